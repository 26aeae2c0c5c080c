import type { CniAnswer, CniCall } from '../../support/exec-cni.ts';
import type { CallOptions, SceneNode, ScenePod } from './scene-node.ts';

/** So often a call is tried that stayed without an answer. */
const TRIES = 5;

/**
 * Calls an executable whose configuration leaves the agent a second for its answer. On a machine that is busy the answer may
 * come later than that; then it calls again. Returns the first answer of the agent, or the last that there was none.
 */
export async function callInTime(
  node: SceneNode,
  command: CniCall['command'],
  pod: ScenePod,
  options: CallOptions,
): Promise<CniAnswer> {
  for (let tries = 1; ; tries++) {
    const answer = await node.call(command, pod, options);
    const { msg = '', details = '' } = answer.error ?? {};
    if (tries === TRIES || !/: DEADLINE: |its deadline has passed/.test(`${msg} ${details}`)) return answer;
  }
}
