import { recordOf, textsOf } from '../../../runtime/json.ts';
import type { ModelListener } from '../../../sim/vpc/api/model/clb/types.ts';
import type { AuditedWorld, OpenAuditor } from './auditor.ts';
import { DIRECT, podsBehind, targetsOf, usedBalancers } from './balancer-owners.ts';
import { judgeOf, OUTSIDE } from './packets.ts';

/** What was sent before objects went back to an older state has arrived by then, milliseconds. */
const ARRIVED_MS = 60_000;

/**
 * A18: a target is published for as long as it is one, no Pod has its address but those of its owners, and no packet to it ends in
 * another one.
 */
export const openBalancerTargets: OpenAuditor = (world) => {
  const judge = judgeOf(world);
  /** Pods that are, or were, behind a Service or Ingress, and behind those of a load balancer. One that is no more stays a target for a while. */
  const behind = new Map<string, Set<string>>();
  const behindOf = (id: string, added: Iterable<string>): ReadonlySet<string> => {
    const uids = behind.get(id) ?? new Set();
    behind.set(id, uids);
    for (const uid of added) uids.add(uid);
    return uids;
  };
  /** Targets whose publication went when objects went back to an older state, until they are targets no more. */
  const lost = new Set<string>();
  let restoredMs = Number.NEGATIVE_INFINITY;
  const look = (): void => {
    for (const owner of [...world.objects('services'), ...world.objects('ingresses')])
      behindOf(
        owner.metadata.uid ?? '',
        podsBehind(world, owner).map(({ metadata }) => metadata.uid ?? ''),
      );
    const published = publishedIps(world);
    const used = usedBalancers(world);
    const targets = new Set(used.flatMap(({ listeners }) => podTargets(listeners)));
    if (world.time.nowMs - restoredMs < ARRIVED_MS) for (const ip of targets) if (!published.has(ip)) lost.add(ip);
    for (const ip of lost) if (!targets.has(ip)) lost.delete(ip);
    const sandboxes = world.machines.flatMap(({ kubelet }) => [...kubelet.sandboxes.values()]);
    for (const { balancer, owners, listeners } of used) {
      const { loadBalancerId: id } = balancer;
      const uids = behindOf(
        id,
        owners.flatMap(({ metadata }) => [...(behind.get(metadata.uid ?? '') ?? [])]),
      );
      for (const ip of podTargets(listeners)) {
        if (lost.has(ip)) continue;
        if (!published.has(ip)) world.violate('A18', `${ip} is a target of ${id}, and not published`);
        const stranger = sandboxes.find(({ ips, uid }) => ips.includes(ip) && !uids.has(uid));
        if (stranger !== undefined) world.violate('A18', `${ip} is a target of ${id}, and ${stranger.pod} has it`);
        const met = metBy(judge, world, ip);
        if (met !== undefined && !uids.has(met.uid))
          world.violate('A18', `what ${id} sends to ${ip} ends in ${met.pod}`);
      }
    }
  };
  return {
    ...{ name: 'A18', step: look, arrives: look },
    restored: () => {
      restoredMs = world.time.nowMs;
    },
    rest: function* () {
      const published = publishedIps(world);
      const targets = new Set(usedBalancers(world).flatMap(({ listeners }) => podTargets(listeners)));
      for (const ip of targets) if (!published.has(ip)) yield `${ip} is a target, and not published`;
      // A Pod behind one of them may be a target soon.
      const services = world.objects('services').filter(({ metadata }) => metadata.annotations?.[DIRECT] === 'true');
      const pods = [...services, ...world.objects('ingresses')].flatMap((owner) => podsBehind(world, owner));
      const soon = new Set(pods.map(({ status }) => recordOf(status)['podIP']));
      for (const ip of published) if (!targets.has(ip) && !soon.has(ip)) yield `${ip} is published, and no target`;
    },
  };
};

function publishedIps(world: AuditedWorld): ReadonlySet<string> {
  const necs = world.objects('nodeeniconfigs');
  return new Set(necs.flatMap((one) => textsOf(recordOf(one['loadBalancers'])['registeredIPs'])));
}

/** The Pod in whose namespace a packet from outside to an address ends. */
function metBy(judge: ReturnType<typeof judgeOf>, { machines }: AuditedWorld, dst: string) {
  const end = judge.fromVpc({ src: OUTSIDE, dst });
  if (end.kind !== 'pod') return undefined;
  const machine = machines.find(({ name }) => name === end.node);
  return [...(machine?.kubelet.sandboxes.values() ?? [])].find(({ netns }) => netns === end.netns);
}

/** Addresses of the targets of listeners that are Pods. */
function podTargets(listeners: readonly ModelListener[]): readonly string[] {
  return listeners.flatMap(targetsOf).flatMap(({ ip, type }) => (type === 'ENI' ? [ip] : []));
}
