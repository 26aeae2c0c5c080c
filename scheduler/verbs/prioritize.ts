import { decodeNodesArgs } from '../api/extender-messages.ts';
import { decideScores, type Score } from '../decide/decide-scores.ts';
import { buildFitContext } from '../decide/fit-context.ts';
import { readPodRequest } from '../index/pod-request.ts';
import { expireReservations, type VerbDeps } from './verb-deps.ts';

/** Scores nodes for a Pod. @see k8s.io/kube-scheduler extender/v1 HostPriorityList */
export function prioritize(deps: VerbDeps, body: unknown): readonly Score[] {
  const { pod, names } = decodeNodesArgs(body);
  const demand = readPodRequest(pod);
  if (demand === undefined) return names.map((name) => ({ Host: name, Score: 0 }));
  expireReservations(deps);
  return decideScores(buildFitContext(deps.index, demand), names, deps.index.nodesOf(names));
}
