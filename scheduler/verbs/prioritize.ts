import { decodeNodesQuestion } from '../api/extender-messages.ts';
import { decideScores, type Score } from '../decide/decide-scores.ts';
import { questionOf } from '../decide/fit-question.ts';
import { readPodDemand } from '../index/pod-demand.ts';
import { beginTurn, type VerbDeps } from './verb-deps.ts';

/** Scores nodes for a Pod. @see k8s.io/kube-scheduler extender/v1 HostPriorityList */
export function prioritize(deps: VerbDeps, body: unknown): readonly Score[] {
  const { pod, names } = decodeNodesQuestion(body);
  const demand = readPodDemand(pod);
  if (demand === undefined) return names.map((name) => ({ Host: name, Score: 0 }));
  beginTurn(deps);
  return decideScores(questionOf(deps.index, demand), names, deps.index.nodesOf(names));
}
