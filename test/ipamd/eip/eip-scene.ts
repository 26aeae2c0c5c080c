import type { TencentApi } from '../../../cloud/tencent/requests.ts';
import { createTencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import { EIP_TAG } from '../../../crd/cloud-tags.ts';
import { EIP_CLAIM_KIND, type EipClaim, eipClaim } from '../../../crd/eip-claim.ts';
import { decodeNec, type NecEntry } from '../../../ipamd/cache/decode-nec.ts';
import { createPodDecoder, POD_INDEXES, type PodFacts } from '../../../ipamd/cache/pod-facts.ts';
import { CircuitBreakers } from '../../../ipamd/calls/circuit-breakers.ts';
import { decodeEipClaim, type EipClaimEntry } from '../../../ipamd/eip/eip-claim-cache.ts';
import { runEips } from '../../../ipamd/eip/run-eips.ts';
import { openInformer } from '../../../kube/informer.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { EIP_CLAIMS, NODE_ENI_CONFIGS, PODS } from '../../../kube/resource-types.ts';
import { WorkQueue } from '../../../kube/work-queue.ts';
import { Faults } from '../../../runtime/decode.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { type InProcessApi, startInProcessApi } from '../../../sim/kube-api/in-process.ts';
import { installKinds } from '../../../sim/kube-api/install-kinds.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import type { CloudSpec } from '../../../sim/vpc/api/model/state.ts';
import type { ModelEip } from '../../../sim/vpc/api/model/types.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { STANDING } from '../support/standing.ts';

const CLUSTER = 'cls-eiptest1';
export const ATTRIBUTES = 'tke.cloud.tencent.com/eip-attributes';
export const ID_LIST = 'tke.cloud.tencent.com/eip-id-list';
export const POLICY = 'tke.cloud.tencent.com/eip-claim-delete-policy';
const PUBLIC_IP = 'tke.cloud.tencent.com/eip-public-ip';
const LEASE_MS = 15_000;
const REQUEST_TIMEOUT_SECONDS = 30;

/** Where a leader dies: before or after its n-th call that changes something, of the cloud's or of the API server's. */
export type Crash = { readonly of: 'cloud' | 'kube'; readonly at: number; readonly moment: 'before' | 'after' };

/** Pods with addresses, a cloud, an API server, and one leader after the other. */
export class EipScene {
  readonly clock = new VirtualClock();
  readonly host: CloudHost;
  readonly server: InProcessApi;
  readonly kube: KubeClient;
  readonly events: string[] = [];
  /** Called with the reason of each event. */
  onEvent: (reason: string) => void = () => {};
  /** How the last leader ended that was not told to. */
  fault: unknown;
  /** What must never happen, and did. */
  readonly violations: string[] = [];
  crash: Crash | undefined;
  claimExpiredMs = 0;
  /** Calls of each kind so far. */
  readonly made = { cloud: 0, kube: 0 };
  #epoch = 0;
  #ids = 0;
  #life: AbortController | undefined;
  readonly #breakers: CircuitBreakers;
  readonly #lent = new Set<string>();

  private constructor(spec: Partial<CloudSpec>) {
    const subnets = [{ subnetId: 'subnet-pods0001', zone: 'ap-guangzhou-3', cidr: '10.1.0.0/24' }];
    const whole = { vpcId: 'vpc-eiptest0', subnets, ...spec };
    this.host = new CloudHost(whole, this.clock, { seed: 7, latencyMs: [10, 30], taskMs: [300, 900] });
    this.server = startInProcessApi({ clock: this.clock, latencyMs: 4 });
    this.kube = this.server.client({ userAgent: 'test' });
    this.#breakers = new CircuitBreakers(this.clock);
  }

  /** Opens a cluster of two nodes, each with an ENI of nine addresses. Nobody leads yet. */
  static async open(spec: Partial<CloudSpec> = {}, maxEips = 5): Promise<EipScene> {
    const scene = new EipScene(spec);
    await scene.clock.run(installKinds(scene.kube));
    for (const name of ['n1', 'n2']) await scene.#addNode(name, maxEips);
    return scene;
  }

  async #addNode(name: string, maxEIPs: number): Promise<void> {
    const { state } = this.host.model;
    const instanceId = `ins-eiptest${name}`;
    state.addInstance({ instanceId, cores: 32, subnetId: 'subnet-pods0001' });
    const cloud = this.#cloudOf(createInProcessApi(this.host));
    const context = { priority: 'pod', owner: 'test', signal: new AbortController().signal } as const;
    const eniId = await this.clock.run(
      (async () => {
        const { eni, task } = await cloud.enis.create(
          { vpcId: state.spec.vpcId, subnetId: 'subnet-pods0001', name: `eni-${name}`, ipCount: 9 },
          context,
        );
        await cloud.tasks.settle(task, context);
        await cloud.tasks.settle(await cloud.enis.attach(eni.eniId, instanceId, context), context);
        return eni.eniId;
      })(),
    );
    const eni = state.eni(eniId);
    const ips = [...eni.ips.values()];
    const primaryIP = ips.find((ip) => ip.isPrimary)?.ip ?? '';
    const secondary = ips.filter((ip) => !ip.isPrimary);
    const addresses = secondary.map(({ ip }) => ({ ip, assignmentID: `a-${ip}`, state: 'Assigned' }));
    const subnet = { subnetID: eni.subnetId, subnetCIDR: '10.1.0.0/24', gateway: '10.1.0.1' };
    const info = { eniID: eniId, mac: eni.mac, primaryIP, state: 'Attached', ...subnet, addresses };
    await this.clock.run(
      this.kube.create(NODE_ENI_CONFIGS, {
        apiVersion: 'networking.tke.cloud.tencent.com/v1',
        kind: 'NodeENIConfig',
        metadata: { name },
        status: { supplyEpoch: 1, instanceID: instanceId, maxEIPs, eniInfos: [info] },
      }),
    );
  }

  /** Address `index` of a node's ENI. */
  ip(node: string, index: number): string {
    const [eni] = this.host.model.state.enisOf(`ins-eiptest${node}`).filter((one) => !one.isPrimary);
    return [...(eni?.ips.values() ?? [])].filter((one) => !one.isPrimary)[index]?.ip ?? '';
  }

  /** Runs a Pod with an address; without one it is in the making. */
  async addPod(name: string, node: string, ip: string | undefined, annotations: Readonly<Record<string, string>>) {
    await this.clock.run(
      this.kube.create(PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'default', annotations },
        spec: { nodeName: node, terminationGracePeriodSeconds: 0, containers: [{ name: 'app', image: 'app' }] },
      }),
    );
    if (ip !== undefined) await this.giveIp(name, ip);
  }

  async giveIp(name: string, ip: string): Promise<void> {
    const body = { status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] } };
    await this.clock.run(
      this.kube.patch(PODS, { namespace: 'default', name }, { kind: 'merge', body, subresource: 'status' }),
    );
  }

  async deletePod(name: string): Promise<void> {
    await this.clock.run(this.kube.delete(PODS, { namespace: 'default', name }));
  }

  /** What a person does who gives a kept EIP up. */
  async deleteClaim(name: string): Promise<void> {
    await this.kube.delete(EIP_CLAIMS, { namespace: 'default', name });
  }

  /** What a person does who forces a claim out: its finalizer is taken off first. */
  async dropClaim(name: string): Promise<void> {
    const ref = { namespace: 'default', name };
    const body = [{ op: 'remove', path: '/metadata/finalizers' }];
    await this.clock.run(this.kube.patch(EIP_CLAIMS, ref, { kind: 'json', body }));
    await this.clock.run(this.kube.delete(EIP_CLAIMS, ref));
  }

  /** An EIP that somebody made by hand, or another program with its tags. */
  async lend(tags: Readonly<Record<string, string>> = {}): Promise<string> {
    const cloud = this.#cloudOf(createInProcessApi(this.host));
    const context = { priority: 'pod', owner: 'test', signal: new AbortController().signal } as const;
    const { eipIds, task } = await this.clock.run(cloud.eips.allocate({ count: 1, name: 'by-hand', tags }, context));
    await this.clock.run(cloud.tasks.settle(task, context));
    const [eipId = ''] = eipIds;
    this.#lent.add(eipId);
    return eipId;
  }

  /** EIPs of the cloud, those on their way out left out. */
  eips(): readonly ModelEip[] {
    return [...this.host.model.state.eips.values()].filter((eip) => eip.status !== 'OFFLINING');
  }

  madeFor(name: string): readonly ModelEip[] {
    return this.eips().filter((eip) => eip.tags[EIP_TAG.claim] === `default/${name}`);
  }

  claim(name: string): EipClaim | undefined {
    const object = this.claimObject(name);
    return object === undefined ? undefined : eipClaim(object, '', new Faults());
  }

  claimObject(name: string): KubeObject | undefined {
    return this.server
      .objects(EIP_CLAIM_KIND.plural, 'networking.tke.cloud.tencent.com')
      .find(({ metadata }) => metadata['name'] === name) as KubeObject | undefined;
  }

  pod(name: string): KubeObject | undefined {
    return this.server.objects('pods').find(({ metadata }) => metadata['name'] === name) as KubeObject | undefined;
  }

  publicIpOf(name: string): string | undefined {
    return this.pod(name)?.metadata.annotations?.[PUBLIC_IP];
  }

  /** Whether a Pod has its EIP: bound in the cloud to its address, and written in claim and annotation. */
  isServed(name: string): boolean {
    const { status } = this.claim(name) ?? {};
    const eip = this.host.model.state.eips.get(status?.eipID ?? '');
    const podIp = (this.pod(name)?.['status'] as { podIP?: string } | undefined)?.podIP;
    const isBound = eip?.status === 'BIND_ENI' && eip.binding?.ip === podIp;
    return isBound && status?.phase === 'Bound' && this.publicIpOf(name) === eip.publicIp;
  }

  /** Why a Pod's claim is not ready; undefined when it is. */
  reasonOf(name: string): string | undefined {
    return this.claim(name)?.status?.conditions?.find(({ status }) => status === 'False')?.reason;
  }

  /** Begins a time in office; the one before must be over. */
  lead(): void {
    this.#epoch += 1;
    const life = new AbortController();
    this.#life = life;
    const { signal } = life;
    const { clock } = this;
    const random = seededRandom(this.#epoch);
    const deps = { client: this.server.client({ userAgent: 'ipamd' }), clock, log: silentLogger, random };
    const pods = openInformer<PodFacts>({ ...deps, type: PODS, decode: createPodDecoder(), indexes: POD_INDEXES });
    const necs = openInformer<NecEntry>({ ...deps, type: NODE_ENI_CONFIGS, decode: decodeNec });
    const claims = openInformer<EipClaimEntry>({ ...deps, type: EIP_CLAIMS, decode: decodeEipClaim });
    for (const informer of [pods, necs, claims]) void informer.start(signal);
    const ids = {
      next: () => (++this.#ids).toString(16).padStart(16, '0'),
      now: () => new Date(clock.nowMs()).toISOString(),
    };
    runEips(
      {
        cloud: this.#cloudOf(this.#watchedCloud(life)),
        kube: this.#watchedKube(life),
        clock,
        log: silentLogger,
        ids,
        events: {
          record: ({ reason, message }) => {
            this.events.push(`${reason}: ${message}`);
            this.onEvent(reason);
          },
        },
        leader: {
          epoch: this.#epoch,
          clusterId: CLUSTER,
          requestTimeoutSeconds: REQUEST_TIMEOUT_SECONDS,
          term: { startedMs: clock.monotonicMs(), leaseMs: LEASE_MS, signal },
        },
        breakers: this.#breakers,
        pods,
        necs,
        eipClaims: claims,
        queues: { eips: new WorkQueue({ clock, random }) },
        definitions: STANDING,
        observer: {},
        config: {
          claimExpiredDurationMs: this.claimExpiredMs,
          clusterId: CLUSTER,
          syncIntervalMs: 60_000,
          orphanGraceMs: 120_000,
          orphanLimit: 10,
          orphanDryRun: false,
          namespace: 'kube-system',
        },
      },
      signal,
    ).catch((error: unknown) => {
      if (!signal.aborted) this.fault = error;
    });
  }

  /** Ends the time in office at once; requests that are under way go on in the cloud. */
  die(): void {
    this.#life?.abort(new Error('the leader is dead'));
  }

  /** Goes on until it holds, with a new leader after each that died; says whether it came to hold. */
  async until(holds: () => boolean, limitMs = 900_000): Promise<boolean> {
    return await this.clock.until(holds, limitMs, async () => {
      if (this.#life?.signal.aborted === true) this.lead();
      await this.clock.advance(250);
      this.#judge();
    });
  }

  /** More than one for a Pod, and one that somebody lent and that is gone. */
  #judge(): void {
    const perClaim = Map.groupBy(this.eips(), (eip) => eip.tags[EIP_TAG.claim] ?? '');
    perClaim.delete('');
    for (const [claim, eips] of perClaim) if (eips.length > 1) this.violations.push(`${claim} has ${eips.length} EIPs`);
    for (const eipId of this.#lent) {
      if (!this.host.model.state.eips.has(eipId)) this.violations.push(`${eipId} was lent and is released`);
    }
  }

  #cloudOf(api: TencentApi) {
    return createTencentCloud({ api, clock: this.clock, random: seededRandom(99 + this.#epoch) });
  }

  #watchedCloud(life: AbortController): TencentApi {
    const inner = createInProcessApi(this.host);
    return {
      ...inner,
      call: async (action, request, signal) => {
        if (action.startsWith('Describe')) return await inner.call(action, request, signal);
        return await this.#counted('cloud', life, () => inner.call(action, request, signal));
      },
    };
  }

  #watchedKube(life: AbortController): KubeClient {
    const inner = this.server.client({ userAgent: 'ipamd' });
    return {
      ...inner,
      create: (...all) => this.#counted('kube', life, () => inner.create(...all)),
      update: (...all) => this.#counted('kube', life, () => inner.update(...all)),
      patch: (...all) => this.#counted('kube', life, () => inner.patch(...all)),
      delete: (...all) => this.#counted('kube', life, () => inner.delete(...all)),
    };
  }

  async #counted<T>(of: Crash['of'], life: AbortController, run: () => Promise<T>): Promise<T> {
    this.made[of] += 1;
    const { crash } = this;
    const isHere = crash?.of === of && crash.at === this.made[of];
    const kill = (): void => {
      this.crash = undefined;
      life.abort(new Error('the leader is dead'));
    };
    if (isHere && crash.moment === 'before') kill();
    life.signal.throwIfAborted();
    try {
      return await run();
    } finally {
      if (isHere && crash.moment === 'after') kill();
      life.signal.throwIfAborted();
    }
  }
}
