// A scenario's module: what the scenario needs, and what it sends.
import type { Env, Variables } from './env.js';
import type { Recording } from './mix.js';
import type { Prepared } from './prepare.js';
import type { Profile } from './profiles.js';
import type { Metrics } from './summary.js';

/** Exports of the module. */
export interface Scenario {
  /** Variables that only this scenario reads. */
  variables?: string[];
  /** Return their values, the later `env.options`. Throws an error if a value is invalid. */
  readOptions?(variables: Variables): any;
  /** The only profile that it works with, and the reason. */
  requiredProfile?: { name: string; because: string };
  /** Set if a single VU sends all requests: its seconds, at most, in addition to the plan's. */
  singleVuOverhead?: number;
  /** Return the recording of a log's arrivals that the scenario can send at their times. */
  recordingOf?(env: Env): Recording | null;
  /** Load the module for setup and summary. Only VU 0 calls it. */
  loadSetup(): Setup;
  /** Called once by each VU. */
  build: Build<any>;
}

/** What runs before and after the load. */
export interface Setup {
  /** Check the target; return the data that `setup()` adds to `Prepared`. */
  prepare(env: Env, profile: Profile, testid: string): object;
  /** Return fields for `lab` in the JSON summary. */
  describe?(env: Env, data: any): object;
  /** Return lines for the text summary. */
  summaryLines?(metrics: Metrics): string[];
}

export type Build<Data extends Prepared> = (env: Env, profile: Profile) => Requests<Data>;

/** What a VU sends. `data` comes from `setup()`. */
export interface Requests<Data extends Prepared> {
  /** Values of the tag `name` that the summary reports separately. */
  names: string[];
  /** One request. */
  request?(data: Data): void;
  /** One complete visit of a user; default: one request, and a pause. */
  iteration?(data: Data): void;
  /** Instead of both: all requests of this VU, at their times. */
  sendAll?(data: Data): void | Promise<void>;
}
