// Exports of a module in scenarios/. main.js calls one of them in every iteration.
import type { Api } from './api.js';
import type { Env } from './env.js';
import type { Prepared } from './prepare.js';
import type { Profile } from './profiles.js';

export interface Tools {
  api: Api;
  env: Env;
  profile: Profile;
}

export interface Scenario {
  /** One complete visit of a user. */
  iteration(tools: Tools, data: Prepared): void;
  /** One request, if the profile's unit is requests. */
  request?(tools: Tools, data: Prepared): void;
  /** Instead of both: one VU for the whole test, which starts the plan itself. */
  watch?(tools: Tools, data: Prepared): Promise<void>;
}
