import { AddressHistory, type Holder, type HoldKind } from '../../support/address-history.ts';
import type { AuditedWorld, OpenAuditor } from './auditor.ts';

const KINDS = ['cloud', 'journal', 'offered', 'sandbox'] as const;
/** Ends and begins are known to half a second, the time between two looks. */
const TOLERANCE_MS = 1_000;

/** A1, A2, A8 and A11 of addresses: what the cloud, journals, offers and sandboxes say of each, from its first day on. */
export const openHistory: OpenAuditor = (world) => {
  const history = new AddressHistory({
    kinds: KINDS,
    cooldownMs: world.cooldownMs - TOLERANCE_MS,
    flushedMs: (ip) => Math.max(...world.machines.map(({ whole }) => whole?.flushedMs.get(ip) ?? -1)),
  });
  const look = (): void => {
    for (const kind of KINDS) history.look(world.time.nowMs, kind, holdersOf(world, kind));
    for (const { auditor, ip, text } of history.judge()) world.violate(auditor, text, history.table(ip));
  };
  return {
    name: 'A1',
    step: look,
    change: look,
    changes: (_machine, call) => {
      if (call.startsWith('journal.')) look();
    },
  };
};

function holdersOf(world: AuditedWorld, kind: HoldKind): readonly (readonly [ip: string, holder: Holder])[] {
  return world.machines.flatMap((machine) => {
    const node = machine.name;
    if (kind === 'cloud') {
      const enis = world.host.model.state.enisOf(machine.instanceId).filter(({ state }) => state === 'AVAILABLE');
      const here = enis.flatMap(({ eniId, ips }) =>
        [...ips.values()]
          .filter(({ state }) => state === 'AVAILABLE')
          .map(({ ip }) => [ip, { node, owner: eniId }] as const),
      );
      // What somebody took away is nobody's fault here: at rest it must be back.
      const taken = [...world.takenByHand].filter(([, instanceId]) => instanceId === machine.instanceId);
      return [...here, ...taken.map(([ip]) => [ip, { node, owner: 'somebody' }] as const)];
    }
    if (machine.isOff) return [];
    return heldOn(machine, kind).map(([ip, owner]) => [ip, { node, owner }] as const);
  });
}

function heldOn(
  { agent, whole, kubelet }: AuditedWorld['machines'][number],
  kind: Exclude<HoldKind, 'cloud'>,
): readonly (readonly [ip: string, owner: string])[] {
  switch (kind) {
    case 'journal':
      if (whole === undefined) return agent.addresses.map((ip) => [ip, 'a Pod']);
      return whole.leases.flatMap(({ addresses, containerId }) =>
        addresses.map(({ ip }) => [ip, containerId] as const),
      );
    case 'offered':
      return [...(whole?.host.journal.content?.offers.keys() ?? [])].map((ip) => [ip, 'ipamd']);
    case 'sandbox':
      return [...kubelet.sandboxes.values()].flatMap(({ ips, pod, uid }) =>
        // The next Pod of a name is another one.
        ips.map((ip) => [ip, `${pod}#${Number.parseInt(uid.slice(-12), 16)}`] as const),
      );
  }
}
