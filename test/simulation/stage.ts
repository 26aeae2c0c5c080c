import type { KubeObject } from '../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS, NODES, PODS } from '../../kube/resource-types.ts';
import { recordOf, textOf } from '../../runtime/json.ts';
import type { FaultRule as ApiFault } from '../../sim/kube-api/faults.ts';
import type { Snapshot } from '../../sim/kube-api/store.ts';
import type { FaultRule as CloudFault } from '../../sim/vpc/api/faults.ts';
import type { ModelEip, ModelEni } from '../../sim/vpc/api/model/types.ts';
import { necFacts } from './auditors/nec-facts.ts';
import type { Life } from './life.ts';
import type { Machine, NodeOptions } from './machine.ts';
import { removePod } from './remove-pod.ts';
import type { LedProgram, Violation, World } from './world.ts';

/** What a Pod of a story is made with. */
type PodOptions = {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  /** Types of its readiness gates. */
  readonly gates?: readonly string[];
  /** Says nothing of addresses: that is left to the webhook. */
  readonly isPlain?: boolean;
};

/** Names of all clients of the API server but people. */
const CLIENTS = ['ipamd-*', 'ccm-*', 'extender-*', 'webhook-*', 'kube-scheduler', 'agent-*', 'kubelet-*', 'agents'];
const MINUTE_MS = 60_000;
/** After which a controller makes a Pod again that was refused. */
const RETRY_MS = 1_000;
const LIMITS = { 'tke.cloud.tencent.com/eni-ip': '1' };

/** What a story tells: nodes, Pods and what befalls them. Each method goes on until what it says has come about. */
export class Stage {
  readonly world: World;
  readonly #heals: (() => void)[] = [];
  /** Pods by the name of their node, in the order in which they were made. */
  readonly #pods = new Map<string, string[]>();
  /** Called when the story proper begins. */
  onBegin: () => void = () => {};
  #made = 0;

  constructor(world: World) {
    this.world = world;
  }

  /** The story proper begins: deaths and losses of a driver are from here on. */
  begin(): void {
    this.onBegin();
  }

  /** What was seen so far that must not be. */
  get violations(): readonly Violation[] {
    return this.world.violations;
  }

  /** A node joins, and is ready for Pods. */
  async node(options: NodeOptions = {}): Promise<Machine> {
    const machine = await this.world.join(options);
    await this.until(`${machine.name} is ready`, () => this.isReady(machine));
    return machine;
  }

  /** A node joins; nothing is waited for. */
  async join(options: NodeOptions = {}): Promise<Machine> {
    return await this.world.join(options);
  }

  /** A node leaves: its machine is off and its instance gone, and its Node and its Pods are deleted. */
  async leave(machine: Machine): Promise<void> {
    machine.turnOff();
    this.world.host.model.state.removeInstance(machine.instanceId);
    await this.forget(machine);
  }

  /** The Node of a machine is deleted, and its Pods after it. */
  async forget({ name }: Pick<Machine, 'name'>): Promise<void> {
    await this.unregister({ name });
    this.world.collectPods(name);
  }

  /** The Node of a machine is deleted, and the machine runs on. */
  async unregister({ name }: Pick<Machine, 'name'>): Promise<void> {
    await this.people(this.world.admin.delete(NODES, { name }));
  }

  /** A machine registers its Node again. */
  async register(machine: Machine, options: NodeOptions = {}): Promise<void> {
    await this.world.register(machine, options);
  }

  /** People, or another program, change a Node; without having read it. Returns whether it was accepted. */
  async patchNode({ name }: Machine, body: object): Promise<boolean> {
    const patch = this.world.admin.patch(NODES, { name }, { kind: 'merge', body });
    return await this.world.run(patch.then(() => true).catch(() => false));
  }

  /** A machine boots. */
  reboot(machine: Machine): void {
    this.world.reboot(machine);
  }

  /** Makes so many Pods on a node, and waits until all have addresses. Returns their names. */
  async pods(machine: Machine, count: number, options: PodOptions = {}): Promise<readonly string[]> {
    const names = await this.make(machine, count, options);
    await this.untilServed(...names);
    return names;
  }

  /** Makes so many Pods on a node. */
  async make(machine: Machine, count: number, options: PodOptions = {}): Promise<readonly string[]> {
    const names: string[] = [];
    for (let i = 0; i < count; i++) names.push(await this.create(`pod-${++this.#made}`, machine, options));
    return names;
  }

  /** Makes a Pod of this name on a node. */
  async pod(name: string, machine: Machine, options: PodOptions = {}): Promise<void> {
    await this.create(name, machine, options);
    await this.until(`${name} has an address`, () => this.ipOf(name) !== undefined);
  }

  /** Makes a Pod; nothing is waited for. Returns its name. */
  async create(name: string, machine: Machine, options: PodOptions = {}): Promise<string> {
    await this.world.run(this.world.admin.create(PODS, podOf(name, { ...options, nodeName: machine.name })));
    this.#pods.set(machine.name, [...(this.#pods.get(machine.name) ?? []), name]);
    return name;
  }

  /** Makes so many Pods for any node, each again until it is let in. Returns their names; nothing else is waited for. */
  async ask(count: number, options: PodOptions = {}): Promise<readonly string[]> {
    const names = Array.from({ length: count }, () => `pod-${++this.#made}`);
    for (const name of names) await this.askFor(name, options);
    return names;
  }

  /** Makes a Pod of this name for any node, again until it is let in, as its controller does. */
  async askFor(name: string, options: PodOptions = {}): Promise<void> {
    const { admin, time } = this.world;
    const make = async (): Promise<void> => {
      for (;;) {
        const isIn = await admin.create(PODS, podOf(name, options)).then(
          () => true,
          () => false,
        );
        if (isIn) return;
        await time.sleep(RETRY_MS);
      }
    };
    await this.world.run(make());
  }

  /** Waits until Pods have their addresses. */
  async untilServed(...names: readonly string[]): Promise<void> {
    await this.until(`${names.join(' ')} have addresses`, () => names.every((name) => this.ipOf(name) !== undefined));
  }

  /** The name of the node that a Pod is bound to. */
  nodeOf(name: string): string | undefined {
    const { nodeName } = recordOf(this.#podObject(name)?.['spec']);
    return typeof nodeName === 'string' ? nodeName : undefined;
  }

  /** Deletes a Pod; nothing is waited for. */
  async delete(name: string): Promise<void> {
    await this.world.run(this.world.admin.delete(PODS, { namespace: 'default', name }));
  }

  /** Removes a Pod's object by force, at once; its kubelet may not have heard of it. */
  force(name: string): void {
    const pod = this.#podObject(name);
    if (pod !== undefined) removePod(this.world.api, pod);
  }

  /** Ends the last Pods of a node, and waits until nothing is left of them. */
  async end(machine: Machine, count: number): Promise<void> {
    const pods = this.#pods.get(machine.name) ?? [];
    await this.endPods(...pods.splice(Math.max(0, pods.length - count)));
  }

  /** Ends Pods by name, and waits until nothing is left of them. */
  async endPods(...names: readonly string[]): Promise<void> {
    for (const name of names) await this.delete(name);
    await this.until(`${names.join(' ')} are gone`, () => names.every((name) => this.#podObject(name) === undefined));
  }

  /** Deletes the last Pods of a node by force: their objects are gone at once, and their sandboxes later. */
  removePods(machine: Machine, count: number): void {
    const pods = this.#pods.get(machine.name) ?? [];
    for (const name of pods.splice(Math.max(0, pods.length - count))) {
      const object = this.#podObject(name);
      if (object !== undefined) removePod(this.world.api, object);
    }
  }

  /** Lets time pass. */
  async minutes(count: number): Promise<void> {
    await this.world.pass(count * MINUTE_MS);
  }

  /** Lets time pass. */
  async seconds(count: number): Promise<void> {
    await this.world.pass(count * 1_000);
  }

  /** Goes on until it holds. */
  async until(what: string, holds: () => boolean, limitMs?: number): Promise<void> {
    await this.world.until(what, holds, limitMs);
  }

  /** Says what must be now. */
  expect(what: string, holds: boolean): void {
    if (!holds) this.world.violate('story', what);
  }

  /** Says what must hold at each step, until it is ended, or the story ends. */
  always(what: string, holds: () => boolean): () => void {
    const { always } = this.world;
    always.set(what, holds);
    return this.#until(() => always.delete(what));
  }

  /** Does something to the API server, by people. */
  async people(work: Promise<unknown>): Promise<void> {
    await this.world.run(work);
  }

  /** People change a part of a node's object. */
  async patchNec({ name }: Machine, body: object, subresource?: 'status'): Promise<void> {
    const change = { kind: 'merge', body, ...(subresource && { subresource }) } as const;
    await this.people(this.world.admin.patch(NODE_ENI_CONFIGS, { name }, change));
  }

  /** Somebody takes an address off its ENI in the cloud. Returns whether it was there. */
  takeInCloud(ip: string): boolean {
    const { state } = this.world.host.model;
    const eni = [...state.enis.values()].find(({ ips }) => ips.has(ip));
    if (eni === undefined) return false;
    const address = eni.ips.get(ip);
    if (address !== undefined) state.removeIp(eni, address);
    state.touch(eni);
    return address !== undefined;
  }

  /** Somebody detaches an ENI in the console. */
  async detachInCloud({ eniId }: ModelEni): Promise<void> {
    const { state } = this.world.host.model;
    const eni = state.eni(eniId);
    this.world.detachedByHand.set(eniId, eni.attachment?.instanceId ?? '');
    state.unbind(eni);
    state.touch(eni);
    state.events.push({ kind: 'detach', eniId });
    await this.world.run(this.world.host.catchUp());
  }

  /** The state of all objects now. */
  backup(): Snapshot {
    return this.world.api.api.store.snapshot();
  }

  /** All objects go back to an older state. */
  restore(...how: Parameters<World['restore']>): void {
    this.world.restore(...how);
  }

  /** The life of the replica that does not lead. */
  standby(): string {
    const { leader, replicas } = this.world;
    return replicas.find((one) => one !== leader)?.life?.name ?? '';
  }

  /** The leader of a program is killed. */
  killLeader(program: LedProgram = 'ipamd'): void {
    this.#leader(program)?.kill();
  }

  /** The leader stands still for a while, as a process that is stopped; then everything reaches it at once. */
  async pauseLeader(seconds: number, program: LedProgram = 'ipamd'): Promise<void> {
    const life = this.#leader(program);
    life?.pause();
    await this.seconds(seconds);
    life?.resume();
  }

  /** The connection of the leader's next such call breaks, and the request arrives so many seconds later. */
  stray(call: string, seconds: number, program: LedProgram = 'ipamd'): void {
    this.#leader(program)?.disturbNext(call, { kind: 'stray', ms: seconds * 1_000 });
  }

  /** All replicas are killed at once. */
  killAll(): void {
    for (const { life } of this.world.replicas) life?.kill();
  }

  /** Something goes wrong between ipamd and the API server, or another client, until it is healed, or the story ends. */
  apiFault(rule: ApiFault): () => void {
    return this.#until(this.world.api.api.faults.add({ userAgent: 'ipamd-*', ...rule }));
  }

  /** Something goes wrong in the cloud until it is healed, or the story ends. */
  cloudFault(rule: CloudFault): () => void {
    return this.#until(this.world.host.faults.add(rule));
  }

  /** Nobody but people reaches the API server until it is healed, or the story ends. */
  serverAway(): () => void {
    const heals = CLIENTS.map((client) => this.partition(client));
    return () => {
      for (const heal of heals) heal();
    };
  }

  /** A client does not reach the API server until it is healed, or the story ends. */
  partition(userAgent: string): () => void {
    return this.#until(this.world.api.partition(userAgent).heal);
  }

  /** Ends all faults. */
  heal(): void {
    for (const heal of this.#heals.splice(0)) heal();
  }

  /** Whether a node is ready for Pods, and has the addresses that it wants. */
  isReady(machine: Machine): boolean {
    const { spec, status } = this.nec(machine);
    const isSaid = status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;
    const { desiredRouteENIIP: wanted } = spec;
    return isSaid && wanted !== undefined && this.supply(machine).length >= wanted;
  }

  /** Spec and status of a node's object. */
  nec(machine: Machine): ReturnType<typeof necFacts> {
    const object = this.world.objects('nodeeniconfigs').find(({ metadata }) => metadata.name === machine.name);
    return object === undefined ? { spec: {}, status: {} } : necFacts(object);
  }

  /** Addresses that serve on a node. */
  supply(machine: Machine): readonly string[] {
    const enis = (this.nec(machine).status.eniInfos ?? []).filter(
      ({ state, draining }) => state === 'Attached' && draining !== true,
    );
    return enis
      .flatMap(({ addresses = [] }) => addresses)
      .filter(({ state }) => state === 'Assigned')
      .map(({ ip }) => ip);
  }

  /** The address of a Pod, as its status says. */
  ipOf(name: string): string | undefined {
    const ip = recordOf(this.#podObject(name)?.['status'])['podIP'];
    return typeof ip === 'string' ? ip : undefined;
  }

  /** How many Pods were made on a node and not ended. */
  podsOn(machine: Machine): number {
    return this.#pods.get(machine.name)?.length ?? 0;
  }

  /** How often a call was sent. */
  sent(action: string): number {
    return this.world.sentCalls.get(action) ?? 0;
  }

  /** ENIs on a node in the cloud, its primary one left out. */
  enis(machine: Machine): readonly ModelEni[] {
    const all = [...this.world.host.model.state.enis.values()];
    return all.filter((eni) => !eni.isPrimary && eni.attachment?.instanceId === machine.instanceId);
  }

  /** EIPs that are bound in the cloud to the address of a running Pod. */
  boundEips(): readonly ModelEip[] {
    return [...this.world.host.model.state.eips.values()].filter(({ status }) => status === 'BIND_ENI');
  }

  /** The EIP that is bound to a Pod's address. */
  eipOf(name: string): string | undefined {
    const ip = this.ipOf(name);
    return this.boundEips().find(({ binding }) => binding?.ip === ip)?.eipId;
  }

  /** The block of addresses of a node. */
  podCidrOf(machine: Machine): unknown {
    const node = this.world.objects('nodes').find(({ metadata }) => metadata.name === machine.name);
    return recordOf(node?.['spec'])['podCIDR'];
  }

  /** Messages of events with a reason. */
  events(reason: string): readonly string[] {
    return this.world.objects('events').flatMap((one) => (one['reason'] === reason ? [textOf(one['message'])] : []));
  }

  #leader(program: LedProgram): Life | undefined {
    return this.world.leaderOf(program)?.life;
  }

  #until(heal: () => void): () => void {
    this.#heals.push(heal);
    return heal;
  }

  #podObject(name: string): KubeObject | undefined {
    // The store's objects are those of the API.
    return this.world.objects('pods').find(({ metadata }) => metadata.name === name) as KubeObject | undefined;
  }
}

function podOf(
  name: string,
  { annotations = {}, labels = {}, gates = [], isPlain = false, nodeName }: PodOptions & { readonly nodeName?: string },
): KubeObject {
  const readinessGates = gates.map((conditionType) => ({ conditionType }));
  const container = { name: 'c', image: 'i', ...(isPlain ? {} : { resources: { limits: LIMITS } }) };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', annotations, labels },
    spec: {
      ...(nodeName !== undefined && { nodeName }),
      containers: [container],
      ...(gates.length > 0 && { readinessGates }),
    },
    status: { phase: 'Pending' },
  };
}
