import { decodePreemptArgs } from '../api/extender-messages.ts';
import { decidePreemption } from '../decide/decide-preemption.ts';
import { buildFitContext } from '../decide/fit-context.ts';
import { readPodRequest } from '../index/pod-request.ts';
import { expireReservations, type VerbDeps } from './verb-deps.ts';

/** The answer of preempt. @see k8s.io/kube-scheduler extender/v1 ExtenderPreemptionResult */
type PreemptResult = {
  readonly NodeNameToMetaVictims: Readonly<
    Record<string, { readonly Pods: readonly { readonly UID: string }[]; readonly NumPDBViolations: number }>
  >;
};

/**
 * Selects, of the nodes that the scheduler would evict Pods from, those on which the Pod then fits, with further victims
 * where the proposed ones free too little.
 */
export function preempt(deps: VerbDeps, body: unknown): PreemptResult {
  const { pod, victims } = decodePreemptArgs(body);
  const demand = readPodRequest(pod);
  expireReservations(deps);
  const { index } = deps;
  const fitting =
    demand === undefined
      ? victims
      : decidePreemption(buildFitContext(index, demand), victims, {
          pod: (uid) => index.pod(uid),
          podsOn: (name) => index.podsOn(name),
          node: (name) => index.node(name),
        });
  const entries = [...fitting].map(([name, { uids, pdbViolations }]) => {
    return [name, { Pods: uids.map((UID) => ({ UID })), NumPDBViolations: pdbViolations }] as const;
  });
  return { NodeNameToMetaVictims: Object.fromEntries(entries) };
}
