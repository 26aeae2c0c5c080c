import { EMPTY_POOL } from '../../agent/pool/pool-state.ts';
import type { NodeEniAddress, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { baselineOf } from '../../ipamd/decide/with-confirmed-offers.ts';
import { type CloudTruth, seenEni } from './cloud-truth.ts';
import type { AgentSide, Budget, Call, IpamdSide, Nec, Setting, World } from './world.ts';

/** Two nodes with an attached ENI each, one ipamd, and names whose Pods keep their address. */
export type KeptWorld = {
  readonly cloud: CloudTruth;
  readonly nodes: readonly KeptNode[];
  readonly claims: readonly KeptClaim[];
  /** `<ENI> <address>`: brought by the late one of a doubled call whose other one was refused. The audit finds it. */
  readonly late: readonly string[];
  readonly epoch: number;
  readonly left: Budget;
  readonly nextId: number;
};

/** A node: its object, its agent, what ipamd does for it. */
export type KeptNode = {
  readonly nec: Nec;
  readonly agent: AgentSide;
  readonly baseline: IpamdSide['baseline'];
  readonly calls: readonly Call[];
};

/** A name, and its Pod if there is one. */
export type KeptClaim = {
  readonly name: string;
  /** Its address; undefined until the cloud has chosen one. */
  readonly ip: string | undefined;
  readonly pod: KeptPod | undefined;
  /** Pods of this name that were. */
  readonly pods: number;
  /** Its address was let go of somewhere, and for long nobody fetched it: that node is to give it up. */
  readonly isGivenUp: boolean;
};

/** A Pod by the API server's word; its sandbox is a lease of an agent, and may outlive it. */
type KeptPod = { readonly uid: string; readonly node: number; readonly isRunning: boolean };

/** What is left out on purpose, to see that the check finds it. */
type KeptFault = 'takes-what-is-in-use' | 'two-calls-for-one-claim' | 'serves-what-was-let-go' | 'forgets-reserved';

/** How large a world of kept addresses is, and what may go wrong in it. */
export type KeptSetting = {
  readonly claims: readonly { readonly name: string; readonly ip?: string }[];
  readonly budget: Budget;
  readonly planted?: KeptFault;
};

/** Both nodes, and no Pod yet. */
export function emptyKeptWorld({ claims, budget }: KeptSetting): KeptWorld {
  return {
    cloud: {
      enis: [0, 1].map((node) => ({
        eniId: eniIdOf(node),
        name: `tke-cls-1-${node}`,
        isAttached: true,
        instanceId: instanceOf(node),
        ips: [],
      })),
      foreign: [],
      answers: new Map(),
      nextEni: 3,
    },
    nodes: [0, 1].map(emptyNode),
    claims: claims.map(({ name, ip }) => ({ name, ip, pod: undefined, pods: 0, isGivenUp: false })),
    late: [],
    epoch: 1,
    left: budget,
    nextId: 10,
  };
}

function emptyNode(node: number): KeptNode {
  const { eniID, mac, name, primaryIP, subnetID, subnetCIDR, gateway } = seenEni({
    eniId: eniIdOf(node),
    name: `tke-cls-1-${node}`,
    isAttached: true,
    instanceId: instanceOf(node),
    ips: [],
  });
  const eni: NodeEniInfo = {
    ...{ eniID, mac, name, primaryIP, subnetID, subnetCIDR, gateway },
    state: 'Attached',
    deviceIndex: 1,
    assignmentID: `000000000000000${node + 1}`,
    securityGroups: [],
    addresses: [],
  };
  const status = { supplyEpoch: 1, eniInfos: [eni], intents: [], instanceID: instanceOf(node) };
  const spec = { desiredRouteENIIP: 0 };
  return {
    nec: { spec, status, life: undefined },
    agent: { pool: EMPTY_POOL, journal: { leases: new Map(), cooldowns: new Map(), offers: new Map() }, writes: [] },
    baseline: baselineOf(spec, status, 0),
    calls: [],
  };
}

/** The node as a world of its own: what the adapters of one node work on. */
export function nodeWorldOf(world: KeptWorld, node: number): World {
  const { nec, agent, baseline, calls } = nodeOf(world, node);
  const { cloud, left, nextId, epoch } = world;
  const ipamd = { epoch, baseline };
  return {
    ...{ cloud, nec, agent, ipamd, calls, left, nextId },
    pods: [],
    resting: [],
    nowMs: 0,
    wasRestored: false,
  };
}

/** Puts a node's world back. */
export function withNodeWorld(world: KeptWorld, node: number, changed: World): KeptWorld {
  const { cloud, nec, agent, ipamd, calls, left, nextId } = changed;
  const next: KeptNode = { nec, agent, baseline: ipamd.baseline, calls };
  const nodes = world.nodes.map((one, i) => (i === node ? next : one));
  return settled({ ...world, cloud, nodes, late: lateIn(world, node, changed), left, nextId });
}

/** What a call brought that is off the record: it was refused, and another one of it was still on its way. */
function lateIn(world: KeptWorld, node: number, { cloud, nec, calls }: World): readonly string[] {
  const before = nodeOf(world, node);
  const isOff = ({ intent }: Call) => before.nec.status.intents?.every(({ id }) => id !== intent.id) ?? true;
  const landed = before.calls.filter((call) => !call.isHeard && isOff(call) && !calls.includes(call));
  if (landed.length === 0 && world.late.length === 0) return world.late;
  const onEni = (truth: CloudTruth) =>
    new Set(truth.enis.flatMap(({ eniId, ips }) => ips.map((ip) => `${eniId} ${ip}`)));
  const [had, has] = [onEni(world.cloud), onEni(cloud)];
  const fresh = landed.length === 0 ? [] : [...has].filter((one) => !had.has(one));
  const known = new Set(
    (nec.status.eniInfos ?? []).flatMap((eni) => (eni.addresses ?? []).map(({ ip }) => `${eni.eniID} ${ip}`)),
  );
  return [...new Set([...world.late, ...fresh])].filter((one) => has.has(one) && !known.has(one)).sort();
}

/** What the controller of claims notes at once: the address of a name, and that it has arrived. */
function settled(world: KeptWorld): KeptWorld {
  const claims = world.claims.map((claim): KeptClaim => {
    const places = placesOf(world, claim.name);
    const ip = claim.ip ?? places[0]?.address.ip;
    const isGivenUp = claim.isGivenUp && places.some(({ address }) => address.state === 'Releasing');
    return ip === claim.ip && isGivenUp === claim.isGivenUp ? claim : { ...claim, ip, isGivenUp };
  });
  return claims.every((claim, i) => claim === world.claims[i]) ? world : { ...world, claims };
}

/** Where a name has an address, by the objects. */
export function placesOf(
  world: KeptWorld,
  name: string,
): readonly { readonly node: number; readonly eni: NodeEniInfo; readonly address: NodeEniAddress }[] {
  return world.nodes.flatMap(({ nec }, node) =>
    (nec.status.eniInfos ?? []).flatMap((eni) =>
      (eni.addresses ?? []).flatMap((address) => (address.claim?.name === name ? [{ node, eni, address }] : [])),
    ),
  );
}

/** A node of the two. */
export function nodeOf(world: KeptWorld, node: number): KeptNode {
  const found = world.nodes[node];
  if (found === undefined) throw new Error(`there is no node ${node}`);
  return found;
}

/** The setting of the adapters of one node. */
export function nodeSettingOf({ claims, budget }: KeptSetting, node: number): Setting {
  return {
    ips: claims.flatMap(({ ip }, i) => ip ?? `10.0.0.${40 + i}`),
    pods: 0,
    warm: { min: 0, max: 0 },
    budget,
    instanceId: instanceOf(node),
  };
}

/** The ENI that a node has from the first. */
export function eniIdOf(node: number): string {
  return `eni-${node + 1}`;
}

/** The instance of a node. */
function instanceOf(node: number): string {
  return `ins-${node + 1}`;
}

/** The sandbox of a Pod, as the agent's lease names it. */
export function sandboxOf(uid: string): string {
  return `${uid}/eth0`;
}
