import { decodePreemptQuestion } from '../api/extender-messages.ts';
import { decidePreemption } from '../decide/decide-preemption.ts';
import { questionOf } from '../decide/fit-question.ts';
import { readPodDemand } from '../index/pod-demand.ts';
import { beginTurn, type VerbDeps } from './verb-deps.ts';

/** The answer of preempt. @see k8s.io/kube-scheduler extender/v1 ExtenderPreemptionResult */
type PreemptResult = {
  readonly NodeNameToMetaVictims: Readonly<
    Record<string, { readonly Pods: readonly { readonly UID: string }[]; readonly NumPDBViolations: number }>
  >;
};

/** Selects, of the nodes that the scheduler would evict Pods from, those on which the Pod then fits. */
export function preempt(deps: VerbDeps, body: unknown): PreemptResult {
  const { pod, victims } = decodePreemptQuestion(body);
  const demand = readPodDemand(pod);
  beginTurn(deps);
  const { index } = deps;
  const kept =
    demand === undefined
      ? victims
      : decidePreemption(
          questionOf(index, demand),
          victims,
          (uid) => index.pod(uid),
          (name) => index.node(name),
        );
  const entries = [...kept].map(([name, { uids, pdbViolations }]) => {
    return [name, { Pods: uids.map((UID) => ({ UID })), NumPDBViolations: pdbViolations }] as const;
  });
  return { NodeNameToMetaVictims: Object.fromEntries(entries) };
}
