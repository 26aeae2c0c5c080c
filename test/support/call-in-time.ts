import type { CniAnswer } from './exec-cni.ts';

/** So often a call is tried that stayed without an answer. */
const TRIES = 5;

/**
 * Calls an executable that leaves the agent a second or two for its answer. On a machine that is busy the answer may come
 * later than that; then it calls again. Returns the first answer of the agent, or the last that there was none.
 */
export async function callInTime(call: () => Promise<CniAnswer>): Promise<CniAnswer> {
  for (let tries = 1; ; tries++) {
    const answer = await call();
    const { msg = '', details = '' } = answer.error ?? {};
    if (tries === TRIES || !/: DEADLINE: |its deadline has passed/.test(`${msg} ${details}`)) return answer;
  }
}
