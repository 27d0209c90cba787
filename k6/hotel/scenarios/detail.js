// @ts-check
// Requests the details of all hotels in turn.
import exec from 'k6/execution';
import { buildApi } from '../api.js';
import { REQUESTS } from '../metrics.js';

export const loadSetup = () => require('../setup.js').buildSetup({ books: 'nothing' });

/** @type {import('../../lib/scenario').Build<import('../setup.js').HotelData>} */
export function build(env, profile) {
  const api = buildApi(env, profile);
  return {
    names: [REQUESTS.detail],
    request: ({ hotels }) => api.readHotel(hotels[exec.scenario.iterationInTest % hotels.length]),
  };
}
