// @ts-check
// Requests the list of hotels.
import { buildApi } from '../api.js';
import { REQUESTS } from '../metrics.js';

export const loadSetup = () => require('../setup.js').buildSetup({ books: 'nothing' });

/** @type {import('../../lib/scenario').Build<import('../setup.js').HotelData>} */
export function build(env, profile) {
  const api = buildApi(env, profile);
  return { names: [REQUESTS.list], request: api.listHotels };
}
