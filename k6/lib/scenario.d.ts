// What a module below scenarios/ may export; main.js calls one of them, again and again.
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
  /** All that one user does. */
  iteration(tools: Tools, data: Prepared): void;
  /** One request of it, where the profile counts requests. */
  request?(tools: Tools, data: Prepared): void;
  /** Instead of both: one VU for the whole test, which begins the plan at its own moment. */
  watch?(tools: Tools, data: Prepared): Promise<void>;
}
