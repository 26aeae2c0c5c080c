import { API_GROUP } from '../../crd/names.ts';
import { openInformer } from '../../kube/informer.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import {
  CONFIG_MAPS,
  ENDPOINT_SLICES,
  INGRESSES,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NODE_ENI_CONFIGS,
  NODES,
  PODS,
} from '../../kube/resource-types.ts';
import { recordOf } from '../../runtime/json.ts';
import { silentLogger } from '../../runtime/log.ts';
import { type InProcessApi, startInProcessApi } from '../../sim/kube-api/in-process.ts';
import { installKinds } from '../../sim/kube-api/install-kinds.ts';
import type { KubeObject as StoredObject } from '../../sim/kube-api/object.ts';
import { storageKey } from '../../sim/kube-api/resources/api-resource.ts';
import type { StoreEvent } from '../../sim/kube-api/store.ts';
import { CloudHost, type RequestMoment } from '../../sim/vpc/api/host.ts';
import type { CloudSpec } from '../../sim/vpc/api/model/state.ts';
import { AUDITORS } from './auditors/all.ts';
import type { Auditor, SentCall } from './auditors/auditor.ts';
import { MachineClock, Timeline } from './clock.ts';
import { openFabric } from './fabric.ts';
import type { Life } from './life.ts';
import { Machine, type NodeOptions, type OpenAgent } from './machine.ts';
import { startCcmLife } from './programs/ccm.ts';
import { ExtenderNetwork, startExtenderLife } from './programs/extender.ts';
import { startIpamdLife } from './programs/ipamd.ts';
import { postTo, type RunningWebhook, startWebhookLife, webhookConfiguration } from './programs/webhook.ts';
import { RunRecord, textOf } from './record.ts';
import { removePod } from './remove-pod.ts';
import { Replica, type Running, type StartProgram } from './replica.ts';
import { EndpointSlices } from './standins/endpoint-slices.ts';
import { KubeScheduler } from './standins/kube-scheduler.ts';
import { between, Streams } from './streams.ts';
import { armTripwire } from './tripwire.ts';
import { WholeAgent } from './whole-agent.ts';

/** What a world is to be; each may be absent. */
export type WorldOptions = {
  readonly seed?: number;
  readonly cloud?: CloudSpec;
  /** Flags of ipamd. */
  readonly flags?: readonly string[];
  /** Of each program. */
  readonly replicas?: number;
  /** The cloud controller manager runs too, with these flags. */
  readonly ccmFlags?: readonly string[];
  /** kube-scheduler and its extender run too, the latter with these flags. */
  readonly extenderFlags?: readonly string[];
  /** Whether kube-scheduler does without an extender that does not answer; default: as its configuration says. */
  readonly isExtenderIgnorable?: boolean;
  /** The webhook runs too, with these flags. */
  readonly webhookFlags?: readonly string[];
  readonly cooldownMs?: number;
  /** Each node has a real agent on a modelled machine, with these flags; absent: a stand-in for it. */
  readonly agentFlags?: readonly string[];
  /** Data of ipamd's ConfigMap, beside VPC and subnets. */
  readonly config?: Readonly<Record<string, string>>;
  /** Keep the lines of the log, not their hash alone. */
  readonly keepsLines?: boolean;
};

/** A program of which one replica leads. */
export type LedProgram = 'ipamd' | 'ccm' | 'extender';

/** Something that must not be. */
export type Violation = {
  readonly auditor: string;
  readonly atMs: number;
  readonly text: string;
  /** What helps to see why, a line each. */
  readonly about?: readonly string[];
};

/** Nothing more is told: something is that must not be, and is among the violations. */
export class Stopped extends Error {
  override readonly name = 'Stopped';
}

/** Two subnets for Pods and one for nodes, in one zone. */
export const CLOUD: CloudSpec = {
  vpcId: 'vpc-0000test',
  subnets: [
    { subnetId: 'subnet-podsa000', zone: 'ap-guangzhou-3', cidr: '10.1.0.0/24' },
    { subnetId: 'subnet-podsb000', zone: 'ap-guangzhou-3', cidr: '10.2.0.0/24' },
    { subnetId: 'subnet-nodes000', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/24' },
  ],
};

/** Plurals of the resources whose changes are in the log and under audit; those of this project are in its API group. */
const OWN = ['nodeeniconfigs', 'vpcips', 'vpcipclaims', 'vpcenis', 'eipclaims'] as const;
const CORE = ['nodes', 'pods', 'configmaps', 'endpoints', 'services', 'events'] as const;
/** API groups of the others. */
const GROUPS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(OWN.map((plural) => [plural, API_GROUP])),
  ingresses: INGRESSES.group,
  endpointslices: ENDPOINT_SLICES.group,
};

/** How often what must hold at every step is looked at, milliseconds. */
const STEP_MS = 500;

/**
 * A cluster with its cloud, in this process: real programs, each in a life of its own; API server, cloud and everybody else as
 * models. All chance is of one seed, and everything that happens is in one log.
 */
export class World {
  readonly time: Timeline;
  readonly streams: Streams;
  readonly record: RunRecord;
  readonly api: InProcessApi;
  /** What people and tests reach the API server with. */
  readonly admin: KubeClient;
  readonly host: CloudHost;
  readonly machines: Machine[] = [];
  readonly violations: Violation[] = [];
  readonly cooldownMs: number;
  /** Of ipamd. */
  readonly replicas: readonly Replica[];
  /** Replicas of the cloud controller manager. */
  readonly ccms: readonly Replica[];
  readonly extenders: readonly Replica[];
  /** Replicas of the webhook; one that leads is ready, as its Service leads to it. */
  readonly webhooks: readonly Replica<RunningWebhook>[];
  readonly scheduler: KubeScheduler | undefined;
  /** Between kube-scheduler and its extenders. */
  readonly network = new ExtenderNetwork((text) => this.violate('A15', text));
  /** Data of ipamd's ConfigMap, as it was made. */
  readonly config: Readonly<Record<string, string>>;
  /** How often each call was sent to the cloud. */
  readonly sentCalls = new Map<string, number>();
  /** ENIs that somebody detached in the cloud, with the ids of their instances; until they are back, Pods cannot have their network. */
  readonly detachedByHand = new Map<string, string>();
  /** What a story says must hold at each step. */
  readonly always = new Map<string, () => boolean>();
  /** Who makes the change of the store that is just being made. */
  writer = '';
  readonly #options: WorldOptions;
  readonly #clocks = new Map<string, MachineClock>();
  readonly #lives: Life[] = [];
  readonly #auditors: readonly Auditor[];
  #serial = 0;

  private constructor(options: WorldOptions) {
    armTripwire();
    this.#options = options;
    this.cooldownMs = options.cooldownMs ?? 30_000;
    const { vpcId, subnets } = options.cloud ?? CLOUD;
    const ofPods = subnets.map(({ subnetId }) => subnetId).filter((id) => id.startsWith('subnet-pods'));
    const own = { TKE_ENI_IPAMD_SUBNET_ID: ofPods.join(':'), TKE_ENI_IPAMD_VPC_ID: vpcId };
    this.config = { ...own, ...options.config };
    this.streams = new Streams(options.seed ?? 1);
    this.record = new RunRecord(options.keepsLines ?? false);
    this.time = new Timeline(this.streams.of('timers'));
    let uids = 0;
    this.api = startInProcessApi({
      clock: this.machineClock('api'),
      latencyMs: 4,
      random: this.streams.of('api'),
      newUid: () => `00000000-0000-4000-9000-${(++uids).toString(16).padStart(12, '0')}`,
      onRequest: (verb, { userAgent, resource, subresource, name, body }) => {
        this.writer = userAgent;
        if (verb === 'get' || verb === 'list') return;
        const about = subresource === '' ? resource.plural : `${resource.plural}/${subresource}`;
        this.note(userAgent, `${verb} ${about} ${name} ${textOf(body)}`);
      },
      ...(options.webhookFlags !== undefined && { postToWebhook: postTo(() => this.webhooks, this.time) }),
    });
    this.admin = this.api.client({ userAgent: 'people' });
    // A story may change it: its next run begins with what it says.
    this.host = new CloudHost({ ...(options.cloud ?? CLOUD) }, this.machineClock('cloud'), {
      latencyMs: [20, 80],
      taskMs: [500, 2_000],
      seed: this.streams.seed,
      fabric: openFabric(this.machines),
    });
    this.host.gate = async (request) => {
      this.#onCloud(request);
      return 'go';
    };
    this.replicas = this.#open('ipamd', startIpamdLife, options.flags ?? []);
    this.ccms = this.#open('ccm', startCcmLife, options.ccmFlags);
    this.extenders = this.#open(
      'extender',
      (life) => startExtenderLife(life, addressOf(life.replica), this.network),
      options.extenderFlags,
    );
    this.webhooks = this.#open('webhook', startWebhookLife, options.webhookFlags);
    this.scheduler = options.extenderFlags && this.#openScheduler();
    this.#auditors = AUDITORS.map((open) => open(this));
    for (const plural of [...OWN, ...CORE]) this.#follow(storageKey({ group: GROUPS[plural] ?? '', plural }), plural);
    if (options.ccmFlags !== undefined) new EndpointSlices(this).run();
  }

  /** Makes a cluster that is configured, in which one ipamd leads and no Node is. */
  static async open(options: WorldOptions = {}): Promise<World> {
    const world = new World(options);
    const metadata = { name: 'tke-eni-ipamd', namespace: 'kube-system' };
    await world.run(installKinds(world.admin));
    await world.run(
      world.admin.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: world.config }),
    );
    if (options.webhookFlags !== undefined)
      await world.run(world.admin.create(MUTATING_WEBHOOK_CONFIGURATIONS, webhookConfiguration()));
    world.#followForAgents();
    for (const { name } of world.extenders) await world.run(makeExtenderPod(world.admin, name));
    for (const replica of world.#all) await replica.start();
    await world.until('each program has a leader', () => world.isLed);
    void world.scheduler?.run();
    return world;
  }

  /** Adds a line to the log. */
  note(who: string, what: string): void {
    this.record.note(this.time.nowMs, who, what);
  }

  /** Says that something is that must not be. */
  violate(auditor: string, text: string, about?: readonly string[]): void {
    if (this.violations.some((one) => one.auditor === auditor && one.text === text)) return;
    this.violations.push({ auditor, atMs: this.time.nowMs, text, ...(about !== undefined && { about }) });
    this.note('audit', `${auditor} ${text}`);
  }

  /** The clock of a machine, by its name. */
  machineClock(name: string): MachineClock {
    const known = this.#clocks.get(name);
    if (known !== undefined) return known;
    const draw = this.streams.of(`clock ${name}`);
    const offsets = {
      wallMs: Math.round(between(draw, [-200, 200])),
      upMs: Math.round(between(draw, [60_000, 600_000])),
    };
    const clock = new MachineClock(this.time, offsets, (text) => this.violate('A14', `${name}: ${text}`));
    this.#clocks.set(name, clock);
    return clock;
  }

  /** The replica of ipamd that leads. */
  get leader(): Replica | undefined {
    return this.leaderOf('ipamd');
  }

  /** The replica of a program that leads. */
  leaderOf(program: LedProgram): Replica | undefined {
    const all = { ipamd: this.replicas, ccm: this.ccms, extender: this.extenders }[program];
    return all.find(({ isLeading }) => isLeading);
  }

  /** Whether each program has a leader. */
  get isLed(): boolean {
    const programs: readonly (readonly Replica[])[] = [this.replicas, this.ccms, this.extenders, this.webhooks];
    return programs.every((all) => all.length === 0 || all.some(({ isLeading }) => isLeading));
  }

  /** Every life that there was, in the order of their beginning. */
  get lives(): readonly Life[] {
    return this.#lives;
  }

  /** Adds a machine, its instance and its Node. */
  async join(options: NodeOptions = {}): Promise<Machine> {
    const machine = new Machine(this, this.machines.length + 1, this.#openAgent());
    this.machines.push(machine);
    const { cores = 2, extendEnis, subnetId = 'subnet-nodes000' } = options;
    const size = extendEnis === undefined ? { cores } : { cores, extendEnis };
    this.host.model.state.addInstance({ instanceId: machine.instanceId, subnetId, ...size });
    await this.register(machine, options);
    this.#boot(machine);
    void machine.whole?.start();
    return machine;
  }

  /** A machine registers its Node. */
  async register({ name, instanceId }: Machine, options: NodeOptions = {}): Promise<void> {
    const { labels = {}, annotations = {}, podCIDR, providerID = `qcloud:///100003/${instanceId}` } = options;
    const spec = { providerID, ...(podCIDR === undefined ? {} : { podCIDR, podCIDRs: [podCIDR] }) };
    const [address = ''] = this.host.model.state.enisOf(instanceId).flatMap(({ ips }) => [...ips.keys()]);
    const addresses = [{ type: 'InternalIP', address }];
    const status = { addresses, conditions: [{ type: 'Ready', status: 'True' }] };
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name, labels, annotations }, spec, status };
    await this.run(this.admin.create(NODES, node));
  }

  /** A machine boots: its kernel, its tmpfs and its sandboxes are gone, its ENIs are plugged in, its Pods start again. */
  reboot(machine: Machine): void {
    const { whole, name, instanceId, kubelet } = machine;
    if (whole === undefined) throw new Error(`${name} has no kernel`);
    this.note(name, 'reboots');
    whole.reboot();
    this.#boot(machine);
    for (const { isPrimary, state, mac } of this.host.model.state.enisOf(instanceId))
      if (!isPrimary && state === 'AVAILABLE') whole.plugIn(mac);
    kubelet.reboot();
    for (const auditor of this.#auditors) auditor.step?.();
  }

  /** The objects of a kind, by name of resource; past all faults. */
  objects(plural: string): readonly StoredObject[] {
    return this.api.objects(plural, GROUPS[plural] ?? '');
  }

  /** The controller manager deletes the Pods of a Node that is gone, at once. */
  collectPods(node: string): void {
    for (const pod of this.objects('pods')) if (recordOf(pod['spec'])['nodeName'] === node) removePod(this.api, pod);
  }

  /** Goes on by `ms`. */
  async pass(ms: number): Promise<void> {
    const endMs = this.time.nowMs + ms;
    while (this.time.nowMs < endMs) {
      await this.time.advance(Math.min(STEP_MS, endMs - this.time.nowMs));
      for (const auditor of this.#auditors) auditor.step?.();
      for (const [what, holds] of this.always) if (!holds()) this.violate('story', `it does not always hold: ${what}`);
    }
  }

  /** Goes on until it holds. @throws Stopped when it does not in time, and when something is that must not be */
  async until(what: string, holds: () => boolean, limitMs = 600_000): Promise<void> {
    const endMs = this.time.nowMs + limitMs;
    while (!holds()) {
      if (this.time.nowMs >= endMs) this.violate('story', `it does not come to hold: ${what}`);
      if (this.violations.length > 0) throw new Stopped(what);
      await this.pass(STEP_MS / 2);
    }
  }

  /** Goes on until work is done. */
  async run<T>(work: Promise<T>): Promise<T> {
    let isDone = false;
    const finish = (): void => {
      isDone = true;
    };
    work.then(finish, finish);
    for (let turns = 0; !isDone; turns++) {
      if (turns > 600_000) throw new Error('the work is not done');
      await this.time.advance(1);
    }
    return await work;
  }

  /** What is not as it must be when nothing is under way any more, by auditor. */
  unrest(): readonly string[] {
    return this.#auditors.flatMap((auditor) => [...(auditor.rest?.() ?? [])].map((text) => `${auditor.name} ${text}`));
  }

  /** Goes back to an older state of all objects. */
  restore(...how: Parameters<InProcessApi['restore']>): void {
    this.note('api', `restored to ${how[0].revision}`);
    this.api.restore(...how);
    for (const auditor of this.#auditors) auditor.restored?.();
    for (const { kubelet } of this.machines) kubelet.relist();
  }

  /** Ends the lives of all programs: the world is not looked at any more. */
  close(): void {
    for (const replica of this.#all) replica.retire();
    for (const { whole } of this.machines) whole?.turnOff();
  }

  get #all(): readonly Replica[] {
    return [...this.replicas, ...this.ccms, ...this.extenders, ...this.webhooks];
  }

  #openScheduler(): KubeScheduler {
    const { api, time, streams, network } = this;
    const { isExtenderIgnorable: isIgnorable } = this.#options;
    return new KubeScheduler({
      ...{ api, time, network, draw: streams.of('kube-scheduler'), kube: api.client({ userAgent: 'kube-scheduler' }) },
      addresses: this.extenders.map(({ name }) => addressOf(name)),
      note: (what) => this.note('kube-scheduler', what),
      ...(isIgnorable !== undefined && { isIgnorable }),
    });
  }

  /** The machine has its primary interface. */
  #boot({ whole, instanceId }: Machine): void {
    if (whole === undefined) return;
    const primary = [...this.host.model.state.enisOf(instanceId)].find(({ isPrimary }) => isPrimary);
    const [address = ''] = primary?.ips.keys() ?? [];
    whole.boot({ mac: primary?.mac ?? '', address, gateway: address.replace(/[0-9]+$/, '1') });
  }

  #openAgent(): OpenAgent | undefined {
    const { agentFlags } = this.#options;
    if (agentFlags === undefined) return undefined;
    const { time, streams } = this;
    return ({ name }, onAddress) =>
      new WholeAgent({
        ...{ nodeName: name, clock: this.machineClock(name), time, streams, onAddress },
        note: (who, what) => this.note(who, what),
        violate: (auditor, text) => this.violate(auditor, text),
        client: (userAgent) => this.api.client({ userAgent }),
        flags: [`--ip-cooldown=${this.cooldownMs}ms`, ...agentFlags],
        onLife: (life) => this.#lives.push(life),
        onChange: (call, values) => {
          for (const auditor of this.#auditors) auditor.changes?.(name, call, values);
        },
      });
  }

  /** The replicas of a program; none of one that has no flags. */
  #open<T extends Running>(
    program: string,
    start: StartProgram<T>,
    flags: readonly string[] | undefined,
  ): readonly Replica<T>[] {
    if (flags === undefined) return [];
    const { time, streams, host } = this;
    const away = streams.of(`${program} away`);
    return Array.from({ length: this.#options.replicas ?? 2 }, (_, at) => {
      const name = `${program}-${String.fromCharCode(97 + at)}`;
      return new Replica(name, {
        ...{ time, streams, away, clock: this.machineClock(name) },
        start: (one) =>
          start({ ...one, replica: name, streams, host, flags, kube: this.api.client({ userAgent: one.life.name }) }),
        nextSerial: () => ++this.#serial,
        note: (who, what) => this.note(who, what),
        violate: (auditor, text) => this.violate(auditor, text),
        onLife: (life) => this.#lives.push(life),
        onSent: (call) => this.#onSent(call),
        onTold: (life, told) => {
          for (const auditor of this.#auditors) auditor.told?.(life, told);
        },
      });
    });
  }

  #follow(key: string, plural: string): void {
    this.api.api.store.subscribe(key, (event: StoreEvent) => {
      this.note('store', `${event.type} ${plural} ${event.object.metadata.name} ${event.revision}`);
      for (const auditor of this.#auditors) auditor.change?.(plural, event);
    });
  }

  #onCloud(request: RequestMoment): void {
    this.note('cloud', `${request.moment} ${request.action} ${textOf(request.params)}`);
    if (request.moment === 'before') for (const auditor of this.#auditors) auditor.arrives?.(request);
  }

  #onSent(call: SentCall): () => void {
    this.sentCalls.set(call.action, (this.sentCalls.get(call.action) ?? 0) + 1);
    for (const auditor of this.#auditors) auditor.sent?.(call);
    return () => {
      for (const auditor of this.#auditors) auditor.answered?.(call);
    };
  }

  /** One watch for all agents: each gets the object of its node. */
  #followForAgents(): void {
    const client = this.api.client({ userAgent: 'agents' });
    const clock = this.machineClock('agents');
    const random = this.streams.of('agents');
    const decode = (object: KubeObject): KubeObject => object;
    const necs = openInformer({ client, type: NODE_ENI_CONFIGS, decode, clock, log: silentLogger, random });
    necs.subscribe(({ key, after }) => {
      if (after !== undefined) this.machines.find(({ name }) => name === key)?.observe(after);
    });
    void necs.start(new AbortController().signal);
  }
}

const EXTENDER_PORT = 61_690;

/** Where a replica of the extender listens. */
function addressOf(replica: string): string {
  return `10.9.0.${replica.charCodeAt(replica.length - 1)}:${EXTENDER_PORT}`;
}

/** Makes the Pod of a replica of the extender, by which others find it. */
async function makeExtenderPod(kube: KubeClient, name: string): Promise<void> {
  const [podIP] = addressOf(name).split(':');
  const metadata = { name, namespace: 'kube-system' };
  const container = { name: 'scheduler', image: 'i', ports: [{ name: 'https', containerPort: EXTENDER_PORT }] };
  const spec = { nodeName: 'control-plane', hostNetwork: true, containers: [container] };
  await kube.create(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
  const body = { status: { phase: 'Running', podIP } };
  await kube.patch(PODS, metadata, { kind: 'merge', body, subresource: 'status' });
}
