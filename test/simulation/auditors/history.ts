import { AddressHistory, type Holder, type HoldKind } from '../../support/address-history.ts';
import type { AuditedWorld, OpenAuditor } from './auditor.ts';
import { necFacts } from './nec-facts.ts';

const KINDS = ['cloud', 'journal', 'offered', 'sandbox'] as const;
/** Ends and begins are known to half a second, the time between two looks. */
const TOLERANCE_MS = 1_000;

/** A1, A2, A8 and A11 of addresses: what the cloud, journals, offers and sandboxes say of each, from its first day on. */
export const openHistory: OpenAuditor = (world) => {
  const history = new AddressHistory({
    kinds: KINDS,
    cooldownMs: world.cooldownMs - TOLERANCE_MS,
    keptFor: (ip) => keptFor(world, ip),
    flushedMs: (ip, node) => world.machines.find(({ name }) => name === node)?.whole?.flushedMs.get(ip),
  });
  const look = (): void => {
    forgiveNoMore(world);
    // Until an agent whose journal is lost has taken its Pods over, their leases are those of before.
    const adopts = new Set(world.machines.filter(isAdopting).map(({ name }) => name));
    const before = adopts.size === 0 ? [] : history.held('journal').filter(([, { node }]) => adopts.has(node));
    for (const kind of KINDS) {
      const held = holdersOf(world, kind);
      history.look(world.time.nowMs, kind, kind === 'journal' ? [...held, ...before] : held);
    }
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

function keptFor(world: AuditedWorld, ip: string): string | undefined {
  const enis = world.objects('nodeeniconfigs').flatMap((object) => necFacts(object).status.eniInfos ?? []);
  const marks = enis.flatMap((eni) => {
    const places = [...(eni.addresses ?? []), { ip: eni.primaryIP, claim: eni.claim }];
    return places.flatMap((one) => (one.ip === ip ? (one.claim ?? []) : []));
  });
  return marks[0]?.name;
}

/** What somebody detached and is back is judged again; an agent has as long as after any change by others. */
function forgiveNoMore({ detachedByHand, host, machines, time }: AuditedWorld): void {
  for (const [eniId, instanceId] of detachedByHand) {
    const eni = host.model.state.enis.get(eniId);
    if (eni !== undefined && (eni.attachment === undefined || eni.state !== 'AVAILABLE')) continue;
    detachedByHand.delete(eniId);
    const whole = machines.find((one) => one.instanceId === instanceId)?.whole;
    if (whole !== undefined) whole.touchedMs = time.nowMs;
  }
}

function isAdopting({ whole, kubelet }: AuditedWorld['machines'][number]): boolean {
  return whole !== undefined && kubelet.sandboxes.size > 0 && whole.host.journal.content?.needsAdoption !== false;
}

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
      const taken = [...world.detachedByHand].filter(([, instanceId]) => instanceId === machine.instanceId);
      const gone = taken.flatMap(([eniId]) => [...(world.host.model.state.enis.get(eniId)?.ips.keys() ?? [])]);
      return [...here, ...gone.map((ip) => [ip, { node, owner: 'somebody' }] as const)];
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
    case 'offered': {
      // An offer is of one assignment: of a later one of the same address it says nothing.
      const later = (whole?.leases ?? []).flatMap(({ addresses }) => addresses);
      const offers = [...(whole?.host.journal.content?.offers.values() ?? [])].filter(
        ({ ip, assignmentId }) => !later.some((one) => one.ip === ip && one.assignmentId !== assignmentId),
      );
      return offers.map(({ ip }) => [ip, 'ipamd']);
    }
    case 'sandbox':
      return [...kubelet.sandboxes.values()].flatMap(({ ips, pod, uid }) =>
        // The next Pod of a name is another one; a stand-in for an agent knows nothing of connections.
        ips.map((ip) => [ip, whole === undefined ? pod : `${pod}#${Number.parseInt(uid.slice(-12), 16)}`] as const),
      );
  }
}
