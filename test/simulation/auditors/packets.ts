import { Judge, type JudgedNode, type Where } from '../../../sim/network/judge.ts';
import type { Sandbox } from '../standins/kubelet.ts';
import type { WholeAgent } from '../whole-agent.ts';
import type { AuditedWorld, OpenAuditor } from './auditor.ts';

/** An address of the VPC that no ENI of a world has. */
export const OF_VPC = '10.0.0.250';
/** An address outside. */
export const OUTSIDE = '8.8.8.8';
/** So long an agent that lives may take to mend what others have changed, milliseconds. */
const REPAIR_MS = 8_000;

/**
 * A2 to A4: what a running Pod sends leaves by the ENI that has its address, what is sent to it arrives in its namespace, and
 * with another source nothing leaves the node. There is no grace but after somebody has changed the node.
 */
export const openPackets: OpenAuditor = (world) => {
  const judge = judgeOf(world);
  return {
    name: 'A2',
    step: () => {
      for (const machine of world.machines) {
        const { whole } = machine;
        if (whole === undefined || machine.isOff || isBeingMended(world, whole)) continue;
        for (const sandbox of machine.kubelet.sandboxes.values())
          if (!isDetached(world, sandbox)) judgePod(world, judge, machine, sandbox);
      }
    },
  };
};

/** Judges where packets go, by the kernels of a world's machines and its cloud. */
export function judgeOf({ machines, host }: AuditedWorld): Judge {
  return new Judge(() => machines.map(judgedNode), host);
}

type Machine = AuditedWorld['machines'][number];

export function judgedNode({ name, instanceId, whole, isOff, kubelet }: Machine): JudgedNode {
  const namespace = (netns: string) => whole?.host.kernel.namespace(netns) ?? [];
  const pods = [...kubelet.sandboxes.values()].flatMap(({ netns = '' }) => namespace(netns));
  return { name, instanceId, host: isOff ? undefined : whole?.host.kernel.namespace('host'), pods };
}

/** Whether others have changed the node, and its agent had no time to mend it. */
function isBeingMended({ time }: AuditedWorld, whole: WholeAgent): boolean {
  const { touchedMs, servesSinceMs } = whole;
  if (touchedMs === undefined) return false;
  if (servesSinceMs === undefined) return true;
  if (time.nowMs - Math.max(touchedMs, servesSinceMs) < REPAIR_MS) return true;
  whole.touchedMs = undefined;
  return false;
}

/** Whether somebody detached its ENI in the cloud. */
function isDetached({ detachedByHand, host }: AuditedWorld, { ips }: Sandbox): boolean {
  const enis = [...detachedByHand.keys()].map((eniId) => host.model.state.enis.get(eniId));
  return enis.some((eni) => ips.some((ip) => eni?.ips.has(ip) === true));
}

function judgePod(world: AuditedWorld, judge: Judge, machine: Machine, { pod, ips, netns: name }: Sandbox): void {
  const { whole } = machine;
  const netns = whole?.host.kernel.namespace(name ?? '');
  const [ip = ''] = ips;
  if (netns === undefined) {
    world.violate('A2', `${pod} has no namespace`);
    return;
  }
  const node = judgedNode(machine);
  for (const dst of [OUTSIDE, OF_VPC]) {
    const out = judge.fromPod(node, netns, { src: ip, dst });
    if (!leavesByOwn(world, machine, ip, out)) world.violate('A2', `${pod} ${ip} to ${dst}: ${textOf(out)}`);
  }
  for (const src of [OUTSIDE, OF_VPC]) {
    const back = judge.fromVpc({ src, dst: ip });
    const isThere = back.kind === 'pod' && back.netns === name && back.node === machine.name;
    if (!isThere) world.violate('A3', `${src} to ${pod} ${ip}: ${textOf(back)}`);
  }
  for (const src of forgeries(machine, ip)) {
    const forged = judge.fromPod(node, netns, { src, dst: OUTSIDE });
    if (forged.kind !== 'lost') world.violate('A4', `${pod} ${ip} sends as ${src}: ${textOf(forged)}`);
  }
}

function leavesByOwn({ host }: AuditedWorld, { instanceId }: Machine, ip: string, out: Where): boolean {
  if (out.kind !== 'outside') return false;
  const eni = [...host.model.state.enisOf(instanceId)].find(({ eniId }) => eniId === out.eniId);
  return eni?.ips.get(ip)?.state === 'AVAILABLE';
}

/** Sources that a Pod may not use: another Pod's, an address of nobody. */
function forgeries({ kubelet }: Machine, ip: string): readonly string[] {
  const others = [...kubelet.sandboxes.values()].flatMap(({ ips }) => ips).filter((other) => other !== ip);
  return [...others.slice(0, 1), OF_VPC];
}

function textOf(where: Where): string {
  switch (where.kind) {
    case 'pod':
      return `it ends in ${where.netns} of ${where.node}`;
    case 'node':
      return `it ends on ${where.node} itself`;
    case 'outside':
      return `it leaves by ${where.eniId}`;
    case 'lost':
      return `it is lost at ${where.at}: ${where.why}`;
  }
}
