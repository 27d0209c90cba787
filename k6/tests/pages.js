// @ts-check
// Tests of HTML answers and redirects.

import { redirectPath } from '../lib/operation.js';
import { hasLogin } from '../lib/pages.js';
import { expectEqual } from './expect.js';

function loginForms() {
  const forms = [
    '<input type="password" name="p">',
    "<INPUT id=a TYPE='password'>",
    '<input\n  name=password>',
    '<input name="password1" type="text">',
  ];
  expectEqual('pages: login forms', forms.map(hasLogin), [true, true, true, true]);
  const others = [
    '<a href="/password/">password</a>',
    '<input type="text" name="user"> password',
    '<input name="q" placeholder="password">',
    '',
  ];
  expectEqual('pages: no login form', others.map(hasLogin), [false, false, false, false]);
}

function redirectPaths() {
  const to = (/** @type {string} */ Location) =>
    redirectPath(/** @type {any} */ ({ status: 302, headers: { Location } }));
  expectEqual(
    'redirects: paths',
    ['/login/?next=/a/', 'https://a.b:8/login/#x', 'http://a.b', 'login'].map(to),
    ['/login/', '/login/', '/', 'login'],
  );
}

function otherLocations() {
  const of = (/** @type {number} */ status, headers = {}) =>
    redirectPath(/** @type {any} */ ({ status, headers }));
  expectEqual('redirects: none', [of(201, { Location: '/a/' }), of(302), of(0)], ['', '', '']);
}

export const cases = [loginForms, redirectPaths, otherLocations];
