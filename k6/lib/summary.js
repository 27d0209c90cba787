// @ts-check
// Output of a run: a page of text, and with SUMMARY_PATH a JSON file for the lab.

// The text summary. It covers only the load: setup's requests are excluded.

/** @typedef {Record<string, { values: Record<string, number> } | undefined>} Metrics */

/**
 * @param {LabPart} lab
 * @param {Setup} setup
 * @param {any} data k6's summary
 */
function summaryText(lab, setup, data) {
  const part = lab.generator ? `, generator ${lab.generator} of ${lab.generators}` : '';
  const heading = `${lab.profile}, ${lab.scenario}, on ${lab.base_url} (testid ${lab.testid})${part}`;
  const lines = lab.setup_completed
    ? buildLines(lab, setup, data)
    : ['setup stopped: no load was sent'];
  return ['', heading, ...lines].join('\n  ') + '\n\n';
}

/**
 * @param {LabPart} lab
 * @param {Setup} setup
 * @param {any} data
 */
function buildLines(lab, setup, { metrics }) {
  const scenario = `scenario:${lab.scenario}`;
  return [
    `requests    ${requestsText(metrics, scenario, lab.load_seconds || 0)}`,
    `failed      ${failedText(metrics, scenario)}`,
    ...refusedLines(metrics),
    `in time     ${inTimeText(metrics, lab)}`,
    `all         ${durationText(metrics[`http_req_duration{${scenario}}`])}`,
    `successful  ${durationText(metrics[`http_req_duration{${scenario},expected_response:true}`])}`,
    `dropped     ${valueOf(metrics.dropped_iterations, 'count')} ${lab.unit} of the plan`,
    `VUs         ${valueOf(metrics.vus_max, 'max')} allocated, maximum ${Math.ceil(lab.max_vus / lab.generators)}`,
    `checks      ${checksText(metrics)}`,
    ...cacheLines(metrics),
    ...retryLines(metrics),
    ...unfinishedLines(metrics, scenario),
    ...(setup.summaryLines ? setup.summaryLines(metrics) : []),
  ];
}

/**
 * @param {Metrics} metrics
 * @param {string} scenario
 * @param {number} seconds
 */
function requestsText(metrics, scenario, seconds) {
  const requests = valueOf(metrics[`http_reqs{${scenario}}`], 'count');
  return `${requests} in ${seconds.toFixed(1)} s, ${(requests / seconds).toFixed(1)}/s`;
}

/**
 * @param {Metrics} metrics
 * @param {string} scenario
 */
function failedText(metrics, scenario) {
  const failed = metrics[`http_req_failed{${scenario}}`];
  // For a rate that counts failures, k6's `passes` are the failures.
  return `${percent(valueOf(failed, 'rate'))} (${valueOf(failed, 'passes')})`;
}

/**
 * k6 counts a refusal as failed; the lab's result does not.
 * @param {Metrics} metrics
 */
function refusedLines(metrics) {
  const refused = valueOf(metrics['lab_cache_status{cache_status:REFUSED}'], 'count');
  return refused ? [`refused     ${refused} of the failed, by Nginx's cache`] : [];
}

/**
 * @param {Metrics} metrics
 * @param {LabPart} lab
 */
function inTimeText({ lab_answers_in_time }, { load_seconds, response_time_bound_ms }) {
  const responses = valueOf(lab_answers_in_time, 'count');
  const goodput = (responses / (load_seconds || 1)).toFixed(1);
  return `${responses} succeeded within ${response_time_bound_ms} ms, ${goodput}/s (goodput)`;
}

/** @param {Metrics[string]} trend */
export function durationText(trend) {
  const stats = ['p(50)', 'p(95)', 'p(99)', 'max'];
  return stats.map((stat) => `${stat} ${valueOf(trend, stat).toFixed(1)} ms`).join(', ');
}

/** @param {Metrics} metrics */
function checksText({ checks }) {
  return `${percent(valueOf(checks, 'rate'))} passed, ${valueOf(checks, 'fails')} failed`;
}

/**
 * Return the responses by cache status, if the scenario records it.
 * @param {Metrics} metrics
 */
function cacheLines(metrics) {
  const parts = Object.keys(metrics)
    .filter((key) => key.startsWith('lab_cache_status{') && valueOf(metrics[key], 'count') > 0)
    .map((key) => `${key.replace(/.*:(.*)}/, '$1')} ${valueOf(metrics[key], 'count')}`);
  return parts.length > 0 ? [`caches      ${parts.join(', ')}`] : [];
}

/** @param {Metrics} metrics */
function retryLines({ lab_retries }) {
  return lab_retries ? [`retried     ${valueOf(lab_retries, 'count')} failed requests`] : [];
}

/**
 * Requests that were started and did not end; a retry belongs to the same request of its user.
 * @param {Metrics} metrics
 * @param {string} scenario
 */
function unfinishedLines({ lab_begun, lab_retries, ...metrics }, scenario) {
  if (!lab_begun) return [];
  const attempts = valueOf(metrics[`http_reqs{${scenario}}`], 'count');
  const completed = attempts - valueOf(lab_retries, 'count');
  const unfinished = valueOf(lab_begun, 'count') - completed;
  return [`unfinished  ${unfinished} requests in flight at the end, not included above`];
}

/**
 * @param {Metrics[string]} metric
 * @param {string} stat
 */
export function valueOf(metric, stat) {
  return (metric && metric.values[stat]) || 0;
}

/** @param {number} rate */
function percent(rate) {
  return `${(rate * 100).toFixed(2)} %`;
}

/** @typedef {import('./env.js').Env} Env */
/** @typedef {import('./profiles.js').Profile} Profile */
/** @typedef {import('./scenario').Setup} Setup */
/** @typedef {ReturnType<typeof describeLab>} LabPart */

/**
 * @param {Env} env
 * @param {Profile} profile
 * @param {Setup} setup
 * @param {any} data k6's summary; almost empty if setup stopped
 * @returns {Record<string, string>} text by destination
 */
export function buildSummary(env, profile, setup, data) {
  const lab = describeLab(env, profile, setup, data);
  /** @type {Record<string, string>} */
  const outputs = { stdout: summaryText(lab, setup, data) };
  const { metrics, state } = data;
  const document = { lab, metrics, state };
  // A pod's files are gone with it; its log stays.
  if (env.summaryPath === '-') outputs.stdout += `lab-summary ${JSON.stringify(document)}\n`;
  else if (env.summaryPath) outputs[env.summaryPath] = JSON.stringify(document, null, 2) + '\n';
  return outputs;
}

/**
 * @param {Env} env
 * @param {Profile} profile
 * @param {Setup} setup
 * @param {any} data
 */
export function describeLab(env, profile, setup, data) {
  const prepared = data.setup_data || null;
  return {
    testid: prepared ? prepared.testid : env.testid,
    profile: profile.name,
    scenario: env.scenario,
    base_url: env.baseUrl,
    unit: profile.unit,
    plan: profile.plan,
    max_vus: profile.maxVUs,
    generator: env.generator,
    generators: env.generators,
    duration_seconds: profile.durationSeconds,
    client_timeout_seconds: env.clientTimeoutMs / 1000,
    response_time_bound_ms: env.boundMs,
    started_at_seconds: startedAt(data),
    load_seconds: prepared ? loadSeconds(data) - (profile.leadSeconds || 0) : null,
    settings: prepared ? prepared.settings : null,
    setup_completed: prepared !== null,
    ...(setup.describe ? setup.describe(env, prepared) : {}),
  };
}

/**
 * @param {any} data
 * @returns {number | null} start of the plan, Unix time in seconds
 */
function startedAt(data) {
  const gauge = data.metrics && data.metrics.lab_scenario_start_seconds;
  return gauge ? gauge.values.value : null;
}

/**
 * Return the duration without setup, up to the last responses; k6's rates divide by the whole run.
 * @param {any} data
 */
function loadSeconds({ metrics, setup_data, state }) {
  if (metrics.lab_load_seconds) return metrics.lab_load_seconds.values.value;
  return state.testRunDurationMs / 1000 - setup_data.setupSeconds;
}
