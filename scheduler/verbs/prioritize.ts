import { decodeNodesArgs } from '../api/extender-messages.ts';
import { renderScores } from '../api/render-scores.ts';
import { decideScores } from '../decide/decide-scores.ts';
import { buildFitContext } from '../decide/fit-context.ts';
import { RenderedJson } from '../http/rendered-json.ts';
import { readPodRequest } from '../index/pod-request.ts';
import { expireReservations, type VerbDeps } from './verb-deps.ts';

/** Scores nodes for a Pod. @see k8s.io/kube-scheduler extender/v1 HostPriorityList */
export function prioritize(deps: VerbDeps, body: unknown): RenderedJson {
  const { pod, names } = decodeNodesArgs(body);
  const demand = readPodRequest(pod);
  if (demand === undefined) return new RenderedJson(renderScores(names, []));
  expireReservations(deps);
  const scores = decideScores(buildFitContext(deps.index, demand), names, deps.index.nodesOf(names));
  return new RenderedJson(renderScores(names, scores));
}
