import { NODE_EVENTS } from '../agent/events/event-reasons.ts';
import { CCM_EVENTS } from '../cloud-controller-manager/events/event-reasons.ts';
import { IPAMD_EVENTS } from '../ipamd/events/event-reasons.ts';
import type { EventReason } from '../kube/events/event-reason.ts';

/** Renders `docs/reference/events.md` of the tables that the recording code takes its reasons from. */
export function renderEventDocs(): string {
  const ofAgent = Object.entries(NODE_EVENTS).map(([reason, { type, cause, cure }]) =>
    row(reason, type, ['Node'], cause, cure),
  );
  const rowsOf = (events: Readonly<Record<string, EventReason>>): readonly string[] =>
    Object.entries(events).map(([reason, { type, objects, cause, cure }]) => row(reason, type, objects, cause, cure));
  return [
    '<!-- Written by `make gen` from agent/cluster/, ipamd/ and cloud-controller-manager/events/event-reasons.ts. -->',
    '# Events',
    '',
    'Recorded when something changes, not repeatedly; equal ones are counted in one. `kubectl describe` of the object shows',
    'them. Nodes and NodeENIConfigs have no namespace, and their events are in `default`:',
    '`kubectl get events -n default --field-selector involvedObject.kind=NodeENIConfig`.',
    '',
    'Errors of a Pod that gets no address are in its own events, by kubelet (`FailedCreatePodSandBox`):',
    '[errors.md](errors.md).',
    '',
    '## tke-eni-agent',
    '',
    ...HEAD,
    ...ofAgent.toSorted(),
    '',
    '## tke-eni-ipamd',
    '',
    'Most are also the reason of a condition of the NodeENIConfig, and the `kind` of `tke_eni_ipamd_problem`:',
    '[ipamd.md](../ipamd.md).',
    '',
    ...HEAD,
    ...rowsOf(IPAMD_EVENTS).toSorted(),
    '',
    '## tke-cloud-controller-manager',
    '',
    'Reasons are those of the cloud controller manager of Kubernetes where the meaning is equal. Those about rights and leadership are on the',
    'lock, an Endpoints object `kube-system/cloud-controller-manager` unless `--leader-elect-resource-lock` says otherwise.',
    '',
    ...HEAD,
    ...rowsOf(CCM_EVENTS).toSorted(),
    '',
  ].join('\n');
}

const HEAD = ['| reason | type | recorded on | cause | cure |', '|---|---|---|---|---|'];

function row(reason: string, type: string, objects: readonly string[], cause: string, cure: string): string {
  return `| \`${reason}\` | ${type} | ${objects.join(', ')} | ${cause} | ${cure} |`;
}
