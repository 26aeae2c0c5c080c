import type { TencentApi } from '../../../cloud/tencent/requests.ts';
import type { NodeEniAddress, NodeEniInfo } from '../../../crd/node-eni-config-fields.ts';
import type { ClaimRequest, ClaimSource } from '../../../ipamd/decide/claim-request.ts';
import type { NodeFactValues } from '../../../ipamd/decide/node-view.ts';
import { NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import { startInProcessApi } from '../../../sim/kube-api/in-process.ts';
import { installKinds } from '../../../sim/kube-api/install-kinds.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { factValuesOf, leadNodes, runAgent, type StoredNec } from './lead-nodes.ts';
import { CLOUD } from './node-scene.ts';

/** The two nodes of the scene. */
const NODES = ['node-a', 'node-b'] as const;
/** One of them. */
type KeptNodeName = (typeof NODES)[number];

/** Of an instance of two cores. */
const LIMITS = { secondaryEnis: 3, secondaryIpsPerEni: 9 };

/** The claim of a Pod: where it is, and with which address. */
type KeptClaim = {
  readonly uid?: string;
  readonly node?: KeptNodeName;
  readonly ip?: string;
  readonly isEnding?: boolean;
};

/** Two nodes, their cloud, agents that offer what has no Pod, and one leader after the other. */
export class KeptScene {
  readonly clock = new VirtualClock();
  readonly host = new CloudHost(CLOUD, this.clock, { seed: 5, latencyMs: [10, 30], taskMs: [300, 900] });
  /** By `namespace/name`; changed by {@link KeptScene.put}. */
  readonly claims = new Map<string, KeptClaim>();
  readonly refused: string[] = [];
  readonly waits = new Map<string, string>();
  /** Addresses that sandboxes have: agents offer none of them. */
  readonly inUse = new Set<string>();
  /** Names of the calls that the leaders made, reading ones left out. */
  readonly calls: string[] = [];
  /** What must never be, and was: an address in use that is routed elsewhere. */
  readonly violations: string[] = [];
  /** The leader dies when it makes the call of this name, before the call reaches the cloud or after it. */
  crashAt: { readonly action: string; readonly isAfter: boolean } | undefined;
  readonly #api = startInProcessApi({ clock: this.clock, latencyMs: 4 });
  #wake: (name: string) => void = () => undefined;
  #epoch = 0;
  #ids = 0;
  #stop = new AbortController();

  /** Opens the scene; a leader is in office. */
  static async open(): Promise<KeptScene> {
    const scene = new KeptScene();
    const kube = scene.#api.client({ userAgent: 'test' });
    await scene.clock.run(installKinds(kube));
    for (const name of NODES) {
      scene.host.model.state.addInstance({ instanceId: instanceOf(name), cores: 2, subnetId: 'subnet-nodes000' });
      const head = { apiVersion: 'networking.tke.cloud.tencent.com/v1', kind: 'NodeENIConfig', metadata: { name } };
      await scene.clock.run(kube.create(NODE_ENI_CONFIGS, { ...head, spec: { desiredRouteENIIP: 0 } }));
      void runAgent(scene.clock, kube, name, ({ eniInfos }) => ({ releasableIPs: scene.#idleOf(eniInfos ?? []) }));
    }
    scene.lead();
    return scene;
  }

  /** Changes a claim, and has both nodes looked at. */
  put(key: string, claim: KeptClaim): void {
    this.claims.set(key, claim);
    for (const name of NODES) this.#wake(name);
  }

  /** The addresses of a node that carry a claim's mark. */
  marked(name: KeptNodeName, key: string): readonly NodeEniAddress[] {
    return this.#enis(name).flatMap((eni) =>
      (eni.addresses ?? []).filter(({ claim }) => `${claim?.namespace}/${claim?.name}` === key),
    );
  }

  /** The state of a node's object. */
  nec(name: KeptNodeName): StoredNec | undefined {
    const all = this.#api.objects('nodeeniconfigs', 'networking.tke.cloud.tencent.com');
    return all.find(({ metadata }) => metadata.name === name) as StoredNec | undefined;
  }

  /** Whether nobody leads: the leader died. */
  isLeaderless(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Whether no call is on record. */
  isQuiet(): boolean {
    return NODES.every((name) => (this.nec(name)?.status?.intents ?? []).length === 0);
  }

  /** The ENI that an address is on by the cloud's word. */
  eniOf(ip: string): string | undefined {
    return [...this.host.model.state.enis.values()].find((eni) => eni.ips.has(ip))?.eniId;
  }

  /** Goes on until it holds; false when it does not within ten minutes. */
  async until(holds: () => boolean): Promise<boolean> {
    return await this.clock.until(holds, 600_000, async () => {
      await this.clock.advance(250);
      this.#judge();
    });
  }

  /** Ends the leader in office, and puts another there. */
  lead(): void {
    this.#stop.abort();
    const stop = new AbortController();
    this.#stop = stop;
    this.#epoch += 1;
    const { wake } = leadNodes({
      clock: this.clock,
      api: this.#api,
      epoch: this.#epoch,
      kube: this.#api.client({ userAgent: 'ipamd' }),
      cloudApi: this.#watched(stop),
      nextId: () => (++this.#ids).toString(16).padStart(16, '0'),
      facts: {
        viewOf: (name) => ({ kind: 'known', values: this.#parts(name as KeptNodeName) }),
        subnetUsed: () => undefined,
        subnetFull: () => undefined,
      },
      nodes: NODES,
      signal: stop.signal,
      beside: {
        claimRefused: (key, { code }) => this.refused.push(`${key} ${code}`),
        claimsWait: (_node, waits) => {
          for (const [key, { message }] of waits) this.waits.set(key, message);
        },
      },
    });
    this.#wake = wake;
  }

  #watched(stop: AbortController): TencentApi {
    const inner = createInProcessApi(this.host);
    return {
      ...inner,
      call: async (action, request, signal) => {
        signal.throwIfAborted();
        if (!action.startsWith('Describe')) this.calls.push(action);
        const crash = this.crashAt?.action === action ? this.crashAt : undefined;
        if (crash !== undefined) this.crashAt = undefined;
        if (crash?.isAfter === false) stop.abort();
        signal.throwIfAborted();
        const answer = await inner.call(action, request, signal);
        if (crash?.isAfter === true) stop.abort();
        signal.throwIfAborted();
        return answer;
      },
    };
  }

  #enis(name: KeptNodeName): readonly NodeEniInfo[] {
    return this.nec(name)?.status?.eniInfos ?? [];
  }

  #parts(name: KeptNodeName): NodeFactValues {
    const other = NODES.find((one) => one !== name) ?? name;
    const reserved = [...this.claims].flatMap(([key, { ip }]) => (ip === undefined ? [] : [[ip, key] as const]));
    const moved = this.#enis(other).flatMap((eni) =>
      (eni.addresses ?? []).flatMap(({ ip, state, claim }) =>
        state === 'Assigned' && claim !== undefined ? [[ip, eni.eniID] as const] : [],
      ),
    );
    return {
      ...factValuesOf(this.host.model.state, instanceOf(name), LIMITS),
      claims: new Map([...this.claims].flatMap(([key, claim]) => this.#wish(name, other, key, claim) ?? [])),
      reservedIps: new Map(reserved),
      movedTo: new Map(moved),
    };
  }

  #wish(
    name: KeptNodeName,
    other: KeptNodeName,
    key: string,
    { uid, node, ip, isEnding }: KeptClaim,
  ): readonly [readonly [string, ClaimRequest]] | undefined {
    const head = { key, mode: 'route-eni' as const, ...(ip === undefined ? {} : { ip }) };
    if (isEnding === true) return [[key, { ...head, goal: 'free' }]];
    if (node === name && uid !== undefined) {
      const source = this.#sourceOf(other, key);
      return [[key, { ...head, goal: 'here', podUid: uid, ...(source === undefined ? {} : { source }) }]];
    }
    if (this.marked(name, key).length === 0) return undefined;
    return [[key, node === undefined ? { ...head, goal: 'keep' } : { ...head, goal: 'elsewhere', willMigrate: true }]];
  }

  #sourceOf(name: KeptNodeName, key: string): ClaimSource | undefined {
    const [held] = this.marked(name, key);
    const eni = this.#enis(name).find(({ addresses = [] }) => addresses.some(({ ip }) => ip === held?.ip));
    if (held === undefined || eni === undefined) return undefined;
    const isReleased = held.state === 'Releasing' && held.claim?.uid === undefined;
    return { nodeName: name, eniId: eni.eniID, isAttached: eni.state === 'Attached', isReleased };
  }

  /** What an agent offers: every address without a Pod that no sandbox has. It wants none for a pool. */
  #idleOf(enis: readonly NodeEniInfo[]) {
    const addresses = enis.flatMap((eni) => eni.addresses ?? []);
    const idle = addresses.filter(
      ({ ip, state, claim }) => state === 'Assigned' && claim?.uid === undefined && !this.inUse.has(ip),
    );
    return idle.map(({ ip, assignmentID }) => ({ ip, assignmentID }));
  }

  /** What a sandbox has is routed to the instance that it is on. */
  #judge(): void {
    for (const { node, ip } of this.claims.values()) {
      if (ip === undefined || node === undefined || !this.inUse.has(ip)) continue;
      const eni = this.host.model.state.enis.get(this.eniOf(ip) ?? '');
      if (eni?.attachment?.instanceId !== instanceOf(node)) this.violations.push(`${ip} is not routed to ${node}`);
    }
  }
}

function instanceOf(name: KeptNodeName): string {
  return `ins-0000${name.slice('node-'.length)}000`;
}
