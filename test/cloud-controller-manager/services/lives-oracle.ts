import type { KubeObject } from '../../../kube/kube-client.ts';
import type { FaultRule } from '../../../sim/vpc/api/faults.ts';
import type { ModelLoadBalancer } from '../../../sim/vpc/api/model/clb/types.ts';
import type { SecurityGroupBook } from '../../../sim/vpc/api/model/security-group-book.ts';
import type { Wanted } from './service-deeds.ts';

/** Chance of each fault for each call. */
export const FAULT_CHANCE = 0.06;

const WRITES = ['CreateLoadBalancer', 'CreateListener', 'ModifyListener', 'BatchModifyTargetWeight', 'Delete*'];

/** What goes wrong with calls of the cloud, all the time. */
export const CLOUD_FAULTS: readonly FaultRule[] = [
  { fault: { kind: 'error', code: 'InternalError' }, probability: FAULT_CHANCE },
  { fault: { kind: 'error', code: 'InternalError', after: true }, probability: FAULT_CHANCE },
  { fault: { kind: 'reset', after: true }, probability: FAULT_CHANCE },
  { fault: { kind: 'hang', after: true }, probability: FAULT_CHANCE },
  { fault: { kind: 'partial' }, probability: FAULT_CHANCE, actions: ['Describe*'] },
  { fault: { kind: 'stale', ms: 20_000 }, probability: 2 * FAULT_CHANCE, actions: ['Describe*'] },
  {
    fault: { kind: 'refuse-one' },
    probability: FAULT_CHANCE,
    actions: ['BatchRegisterTargets', 'BatchDeregisterTargets'],
  },
  { fault: { kind: 'task', fate: 'fail' }, probability: FAULT_CHANCE, actions: WRITES },
  { fault: { kind: 'task', fate: 'vanish' }, probability: FAULT_CHANCE, actions: WRITES },
];

/** The state of both sides, past all faults. */
type BothSides = {
  readonly balancers: readonly ModelLoadBalancer[];
  readonly securityGroups: SecurityGroupBook;
  /** Those of the story. */
  readonly services: readonly KubeObject[];
};

/** The load balancer that a person bought, how it was, and the addresses of the Nodes. */
type Bystanders = { readonly bought: string; readonly foreign: string; readonly ips: readonly string[] };

/**
 * Finds what differs from what is asked for: one load balancer for each Service, as it asks for it and as it publishes it, and
 * nothing else. It shares no code with the controller.
 */
export function remaindersOf(
  { balancers, securityGroups, services }: BothSides,
  wanted: ReadonlyMap<string, Wanted>,
  { bought, foreign, ips }: Bystanders,
): readonly string[] {
  const found: string[] = [];
  const bystander = balancers.find(({ loadBalancerId }) => loadBalancerId === bought);
  const shownNow = bystander === undefined ? 'gone' : shownOf(bystander);
  if (shownNow !== foreign) found.push(`the bought load balancer is ${shownNow}, was ${foreign}`);
  const own = balancers.filter(({ loadBalancerId }) => loadBalancerId !== bought);
  const claimed = new Set<string>();
  for (const [name, { port, isInternal, range }] of wanted) {
    const service = services.find(({ metadata }) => metadata.name === name);
    const its = own.filter(({ tags }) => tags['tke-eni-owner']?.endsWith(service?.metadata.uid ?? ' '));
    const [one] = its;
    if (one === undefined || its.length > 1) {
      found.push(`${name} has ${its.length} load balancers`);
      continue;
    }
    claimed.add(one.loadBalancerId);
    const rules = securityGroups.rulesOf(one.securityGroupIds).map((rule) => `${rule.cidr} to ${rule.port}`);
    const is = `${shownOf(one)} from ${rules.sort().join(', ')}`;
    const targets = ips
      .map((ip) => `${ip} 10`)
      .sort()
      .join(', ');
    const from = range === '' ? '' : `${range} to ${port}`;
    const should = `${isInternal ? 'INTERNAL' : 'OPEN'} ${port}: ${targets} from ${from}`;
    if (is !== should) found.push(`${name} is ${is}, should be ${should}`);
    const status = service?.['status'] as {
      readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string }[] };
    };
    const published = (status.loadBalancer?.ingress ?? []).map(({ ip }) => ip).join();
    if (published !== one.vip) found.push(`${name} publishes ${published}, has ${one.vip}`);
  }
  for (const { loadBalancerId, tags } of own)
    if (!claimed.has(loadBalancerId)) found.push(`${loadBalancerId} of ${tags['tke-eni-owner']} is left`);
  for (const { metadata } of services) if (!wanted.has(metadata.name)) found.push(`Service ${metadata.name} is left`);
  const groups = [...wanted.values()].filter(({ range }) => range !== '').length;
  if (securityGroups.made.size !== groups)
    found.push(`there are ${securityGroups.made.size} security groups, should be ${groups}`);
  return found;
}

/** Shows type, ports and targets of a load balancer. */
export function shownOf({ type, listeners }: ModelLoadBalancer): string {
  const all = [...listeners.values()].map(({ port, targets }) => {
    const its = [...targets.values()].map(({ ip, weight }) => `${ip} ${weight}`).sort();
    return `${port}: ${its.join(', ')}`;
  });
  return `${type} ${all.sort().join('; ')}`;
}
