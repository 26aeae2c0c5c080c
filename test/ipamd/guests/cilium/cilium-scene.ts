import { readCiliumNode } from '../../../../crd/cilium-node.ts';
import { NODE_CILIUM_IPAM_LABEL } from '../../../../crd/names.ts';
import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../../../crd/node-eni-config-fields.ts';
import type { KubeObject } from '../../../../kube/kube-client.ts';
import { CILIUM_NODES, CUSTOM_RESOURCE_DEFINITIONS, NODES, PODS } from '../../../../kube/resource-types.ts';
import { recordOf } from '../../../../runtime/json.ts';
import { ADMIN } from '../../../../sim/kube-api/auth/tokens.ts';
import { dispatch } from '../../../../sim/kube-api/verbs/dispatch.ts';
import { seededRandom } from '../../../../sim/support/seeded-random.ts';
import { CiliumAgent } from '../../../support/cilium-agent.ts';
import { CILIUM_NODE_DEFINITION } from '../../../support/cilium-node-definition.ts';
import { addInstance, nodeOf, type ShellScene, shellScene } from '../../shell/shell-scene.ts';

const LABELS = { [NODE_CILIUM_IPAM_LABEL]: 'crd' };
const LIMIT_MS = 1_200_000;

/** The agent of Cilium on a node, one life after the other; its Pods live on between two. */
type CiliumOn = {
  agent: CiliumAgent;
  life: AbortController;
  /** It has its addresses. */
  isReady: boolean;
  /** Addresses by owner, of sandboxes: what really is in use. */
  readonly sandboxes: Map<string, string>;
};

/** Whole ipamds on the virtual clock, and stand-ins of Cilium's agent. */
export class CiliumScene {
  readonly shell: ShellScene;
  readonly agents = new Map<string, CiliumOn>();
  /** Pools were edited by hand: two may have one address. */
  isEdited = false;
  stepMs = 250;
  readonly #random = seededRandom(7);

  private constructor(shell: ShellScene) {
    this.shell = shell;
  }

  static async open({ isDefined = true } = {}): Promise<CiliumScene> {
    const scene = new CiliumScene(await shellScene());
    if (isDefined) await scene.define();
    return scene;
  }

  async define(): Promise<void> {
    await this.run(this.shell.kube.create(CUSTOM_RESOURCE_DEFINITIONS, CILIUM_NODE_DEFINITION));
  }

  async run<T>(promise: Promise<T>): Promise<T> {
    return await this.shell.clock.run(promise);
  }

  /** A node joins; with Cilium's agent on it unless it says otherwise. */
  async join(name: string, { isLabelled = true, hasAgent = true } = {}): Promise<void> {
    addInstance(this.shell.host, `ins-cilium${name}`);
    const node = nodeOf(name, `ins-cilium${name}`);
    const labels = isLabelled ? LABELS : {};
    await this.run(this.shell.kube.create(NODES, { ...node, metadata: { name, labels } }));
    if (hasAgent) this.startAgent(name);
  }

  /** Cilium's agent starts, and asks for the addresses of what runs on the node. */
  startAgent(name: string, restoreAfterMs = 0): void {
    const sandboxes = this.agents.get(name)?.sandboxes ?? new Map<string, string>();
    const life = new AbortController();
    const { clock, server } = this.shell;
    const own = { kube: server.client({ userAgent: `cilium-${name}` }), clock, random: this.#random, nodeName: name };
    const agent = new CiliumAgent({ ...own, labels: LABELS, endpoints: new Map(sandboxes), restoreAfterMs });
    const on = { agent, life, isReady: false, sandboxes };
    this.agents.set(name, on);
    const begin = (): void => {
      on.isReady = true;
      for (const [ip, owner] of agent.dump()) if (!owner.includes('/')) sandboxes.set(owner, ip);
    };
    agent.start(life.signal).then(begin, () => {});
  }

  /** The process ends; what runs on the node lives on. */
  killAgent(name: string): void {
    this.agents.get(name)?.life.abort(new Error('killed'));
  }

  node(name: string): KubeObject | undefined {
    return this.shell.server.objects('ciliumnodes', 'cilium.io').find(({ metadata }) => metadata['name'] === name) as
      | KubeObject
      | undefined;
  }

  ipam(name: string) {
    return readCiliumNode(this.node(name) ?? {}).ipam;
  }

  poolIps(name: string): readonly string[] {
    return [...this.ipam(name).pool.keys()].sort();
  }

  /** Addresses that the NodeENIConfig has assigned. */
  assigned(name: string): readonly string[] {
    const { eniInfos = [] } = this.statusOf(name);
    const all = eniInfos.flatMap(({ addresses = [] }) => addresses.filter(({ state }) => state === 'Assigned'));
    return all.map(({ ip }) => ip).sort();
  }

  statusOf(name: string): NodeEniConfigStatus {
    return recordOf(this.shell.nec(name)?.['status']) as NodeEniConfigStatus;
  }

  specOf(name: string): NodeEniConfigSpec {
    return recordOf(this.shell.nec(name)?.['spec']) as NodeEniConfigSpec;
  }

  events(): readonly string[] {
    return this.shell.server.objects('events').map((one) => `${String(one['reason'])} ${String(one['message'])}`);
  }

  async patchNode(name: string, body: unknown, subresource?: 'status'): Promise<void> {
    const patch = { kind: 'merge', body, ...(subresource === undefined ? {} : { subresource }) } as const;
    await this.run(this.shell.kube.patch(CILIUM_NODES, { name }, patch));
  }

  /** A Pod comes to a node, and Cilium's agent gives it an address. */
  async startPod(name: string, node: string): Promise<string | undefined> {
    await this.createPod(name, node);
    return await this.wirePod(name, node);
  }

  /** The object of a Pod on a node; Cilium's agent was not asked for an address yet. */
  async createPod(name: string, node: string, annotations: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.run(
      this.shell.kube.create(PODS, {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default', annotations } },
        spec: { containers: [{ name: 'c', image: 'i' }], nodeName: node },
        status: { phase: 'Pending' },
      }),
    );
  }

  /** Cilium's agent gives a Pod its address. */
  async wirePod(name: string, node: string): Promise<string | undefined> {
    const on = this.#on(node);
    if (!this.#hasFree(node) && this.pinOf(name, node) === undefined) return undefined;
    const ip = on.agent.allocate(`default/${name}`);
    on.sandboxes.set(`default/${name}`, ip);
    await this.showAddress(name, ip);
    return ip;
  }

  /** Writes the address of a Pod into its status, as the kubelet does. */
  async showAddress(name: string, ip: string): Promise<void> {
    const body = { status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] } };
    await this.run(
      this.shell.kube.patch(PODS, { namespace: 'default', name }, { kind: 'merge', body, subresource: 'status' }),
    );
  }

  /** The address that only this Pod may get. */
  pinOf(name: string, node: string): string | undefined {
    return [...this.ipam(node).pool].find(([, { owner }]) => owner === `default/${name}`)?.[0];
  }

  async endPod(name: string, node: string): Promise<void> {
    const { agent, life, sandboxes } = this.#on(node);
    const ip = sandboxes.get(`default/${name}`);
    // One that was not restored at the agent's start is none of its own.
    if (ip !== undefined && !life.signal.aborted && agent.dump().has(ip)) agent.release(ip);
    sandboxes.delete(`default/${name}`);
    await this.removePod(name);
  }

  /** Deletes the object of a Pod. */
  async removePod(name: string): Promise<void> {
    const { api } = this.shell.server;
    const resource = api.registry.find('', 'v1', 'pods');
    if (resource === undefined) throw new Error('no Pods');
    const query = new URLSearchParams('gracePeriodSeconds=0');
    const target = { resource, namespace: 'default', name, subresource: '', query, body: {} };
    dispatch(api, 'delete', { ...target, user: ADMIN, userAgent: 'kubelet', contentType: '' });
    await this.shell.clock.advance(1);
  }

  /** Pods `NODE-NUMBER`, each as soon as an address is free. */
  async startPods(node: string, count: number): Promise<void> {
    for (let pod = 0; pod < count; pod++) {
      await this.until(() => this.#hasFree(node), `a free address on ${node}`);
      await this.startPod(`${node}-${pod}`, node);
    }
  }

  /** Ends the first Pods of a node. */
  async endPods(node: string, count: number): Promise<void> {
    for (let pod = 0; pod < count; pod++) await this.endPod(`${node}-${pod}`, node);
  }

  /** No release is under way, and pool and NodeENIConfig agree. */
  isSettled(node: string): boolean {
    return this.ipam(node).releases.size === 0 && this.poolIps(node).join() === this.assigned(node).join();
  }

  async until(holds: () => boolean, what: string): Promise<void> {
    if (!(await this.shell.clock.until(holds, LIMIT_MS, () => this.step())))
      throw new Error(`it does not come to hold: ${what}; ${this.events().join('\n')}`);
  }

  async pass(ms: number): Promise<void> {
    const untilMs = this.shell.clock.monotonicMs() + ms;
    while (this.shell.clock.monotonicMs() < untilMs) await this.step();
  }

  async step(): Promise<void> {
    await this.shell.clock.advance(this.stepMs);
    this.#check();
  }

  #on(node: string): CiliumOn {
    const on = this.agents.get(node);
    if (on === undefined) throw new Error(`no agent of Cilium on ${node}`);
    return on;
  }

  #hasFree(node: string): boolean {
    const { isReady, sandboxes } = this.#on(node);
    const taken = new Set(sandboxes.values());
    const { pool, releases } = this.ipam(node);
    return isReady && [...pool].some(([ip, { owner }]) => owner === undefined && !taken.has(ip) && !releases.has(ip));
  }

  /** What must hold at any moment: no address is in two pools; one in use is on its node by the cloud, and used once. */
  #check(): void {
    const pools = new Map<string, string>();
    for (const name of this.isEdited ? [] : this.agents.keys()) {
      for (const ip of this.ipam(name).pool.keys()) {
        if (pools.has(ip)) throw new Error(`${ip} is in the pools of ${name} and of ${pools.get(ip)}`);
        pools.set(ip, name);
      }
    }
    const nodes = new Map<string, string>();
    for (const [name, { sandboxes }] of this.agents) {
      const enis = [...this.shell.host.model.state.enis.values()].filter(
        ({ attachment }) => attachment?.instanceId === `ins-cilium${name}`,
      );
      const there = new Set(enis.flatMap(({ ips }) => [...ips.keys()]));
      for (const [owner, ip] of sandboxes) {
        if (!there.has(ip)) throw new Error(`${ip} of ${owner} on ${name} is on no ENI of it`);
        if (nodes.has(ip)) throw new Error(`${ip} is used on ${name} and on ${nodes.get(ip)}`);
        nodes.set(ip, name);
      }
    }
  }
}
