import { randomBytes } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { RuleMode } from '../../../dataplane/network.ts';
import { TABLE_PODLESS } from '../../../dataplane/numbers.ts';
import type { Child } from '../../../sim/support/child.ts';
import { childEnv } from '../../../sim/support/child-env.ts';
import type { JsonObject, NetnsView } from '../../../sim/support/netns.ts';
import { run } from '../../../sim/support/run.ts';
import type { AttachedEni } from '../../../sim/vpc/nic.ts';
import type { TestVpc } from '../../../sim/vpc/vpc.ts';
import { type AgentOptions, type AgentProcess, startAgent } from '../../support/agent-process.ts';
import { callInTime } from '../../support/call-in-time.ts';
import { type CniAnswer, type CniCall, execCni, kubernetesArgs } from '../../support/exec-cni.ts';
import { binDirOf, executablePath } from '../../support/executables.ts';
import { findViolations, type InvariantScope } from '../../support/invariants.ts';
import { PodNetns } from '../../support/pod-netns.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { ipsOf } from './cni-answers.ts';

/** A node of a scene, with its ENIs. */
export type NodeSpec = {
  readonly name: string;
  readonly enis: readonly { readonly eniId: string; readonly subnetId?: string; readonly ips: number }[];
  /** ENIs that Pods get as a whole; default none. */
  readonly directEnis?: readonly { readonly eniId: string; readonly subnetId?: string }[];
  readonly agentFlags?: AgentOptions['flags'];
  /** What to put before the agent's command line; gets the node's folder. */
  readonly wrapAgent?: (dir: string) => readonly string[];
};

/** A sandbox as a runtime would make it, before and after ADD. */
export type ScenePod = {
  readonly node: SceneNode;
  readonly netns: SandboxNetns;
  readonly containerId: string;
  readonly ifName: string;
  readonly namespace: string;
  readonly name: string;
  /** CNI_ARGS; undefined leaves it unset. */
  readonly args: string | undefined;
};

/** A sandbox that has its network. */
export type AttachedPod = ScenePod & {
  readonly ip: string;
  readonly ips: readonly string[];
  readonly result: JsonObject;
};

/** What tests may want otherwise than usual in a sandbox. */
export type PodOptions = {
  readonly containerId?: string;
  readonly ifName?: string;
  readonly namespace?: string;
  readonly name?: string;
  /** null leaves CNI_ARGS unset. */
  readonly args?: string | null;
  /** The sandbox's namespace; default a new one. */
  readonly netns?: SandboxNetns;
};

/** Names that the one executable answers to. */
export const OUR_PLUGINS = ['tke-route-eni', 'tke-eni-ipamc', 'tke-direct-eni'] as const;

/** What tests may want otherwise than usual in a call. */
export type CallOptions = {
  readonly plugin?: (typeof OUR_PLUGINS)[number];
  readonly conf?: object | string;
  /** Wins over what the sandbox says; undefined unsets. */
  readonly env?: Readonly<Record<string, string | undefined>>;
};

/** The namespace of a sandbox. */
class SandboxNetns extends PodNetns {
  /** Names of all links in it, sorted. */
  async linkNames(): Promise<readonly string[]> {
    return (await this.ipJson('link')).map((link) => String(link['ifname'])).sort();
  }
}

type SceneNodeParts = {
  readonly vpc: TestVpc;
  readonly name: string;
  readonly dir: string;
  readonly ruleMode: RuleMode;
  readonly enis: readonly AttachedEni[];
  readonly directEnis?: readonly AttachedEni[];
  readonly flags: NonNullable<AgentOptions['flags']>;
  readonly wrap?: readonly string[];
  /** Default: the folder's own file, from the VPC; 'none' for an agent that gets its supply elsewhere. */
  readonly supplyFile?: string;
  readonly criSocket?: string;
};

/** A node with its agent, and the runtime's part of CNI. */
export class SceneNode {
  readonly vpc: TestVpc;
  readonly name: string;
  readonly dir: string;
  readonly ruleMode: RuleMode;
  readonly enis: readonly AttachedEni[];
  readonly directEnis: readonly AttachedEni[];
  readonly netns: NetnsView;
  readonly flags: NonNullable<AgentOptions['flags']>;
  #wrap: readonly string[];
  #places: Pick<AgentOptions, 'supplyFile' | 'criSocket'>;
  #agent: AgentProcess | undefined;
  #attached = new Map<string, { readonly pod: ScenePod; readonly plugin: CallOptions['plugin'] }>();

  constructor(parts: SceneNodeParts) {
    this.vpc = parts.vpc;
    this.name = parts.name;
    this.dir = parts.dir;
    this.ruleMode = parts.ruleMode;
    this.enis = parts.enis;
    this.directEnis = parts.directEnis ?? [];
    this.flags = parts.flags;
    this.#wrap = parts.wrap ?? [];
    const { supplyFile, criSocket } = parts;
    this.#places = {
      ...(supplyFile === undefined ? {} : { supplyFile }),
      ...(criSocket === undefined ? {} : { criSocket }),
    };
    this.netns = parts.vpc.node(parts.name).netns;
  }

  /** The running agent, or the one that ran last. @throws Error before the first start */
  get agent(): AgentProcess {
    if (this.#agent === undefined) throw new Error(`${this.name}: no agent was started`);
    return this.#agent;
  }

  /** Writes what the VPC has assigned to the file that the agent watches. */
  writeSupply(): void {
    this.vpc.writeSupply(this.name, join(this.dir, 'node.yaml'));
  }

  /** Starts the agent; by default waits until it could serve an ADD. */
  async startAgent(options: Pick<AgentOptions, 'until' | 'flags'> = {}): Promise<AgentProcess> {
    this.#agent = await startAgent({
      netns: this.netns,
      dir: this.dir,
      ...this.#places,
      until: options.until ?? 'ready',
      wrap: this.#wrap,
      flags: { ...this.flags, ...options.flags },
    });
    return this.#agent;
  }

  /** Ends the agent without a chance to tidy up. Idempotent. */
  async killAgent(): Promise<void> {
    await this.#agent?.child.stop('SIGKILL');
  }

  /** A network configuration of ours, as `conf` in /etc/cni/net.d has it. */
  conf(extra: object = {}): JsonObject {
    const backend = `unix:${join(this.dir, 'agent.sock')}`;
    return { cniVersion: '1.0.0', name: 'tke-route-eni', type: 'tke-route-eni', backend, ...extra };
  }

  /** Makes a sandbox that has no network yet. */
  async newPod(options: PodOptions = {}): Promise<ScenePod> {
    const { containerId = randomBytes(32).toString('hex'), ifName = 'eth0', namespace = 'default' } = options;
    const name = options.name ?? `pod-${containerId.slice(0, 8)}`;
    const args = options.args === null ? undefined : (options.args ?? kubernetesArgs({ namespace, name }));
    const netns = options.netns ?? (await this.newNetns());
    return { node: this, netns, containerId, ifName, namespace, name, args };
  }

  /** Makes a namespace as a runtime hands it over: `lo` is up, nothing else in it. The VPC removes it at its end. */
  async newNetns(): Promise<SandboxNetns> {
    const netns = new SandboxNetns(`${this.vpc.prefix}pod-${randomBytes(4).toString('hex')}`);
    await run(['ip', 'netns', 'add', netns.name]);
    await netns.ip('link', 'set', 'lo', 'up');
    return netns;
  }

  /** Calls an executable as the runtime of this node does: for STATUS, which waits two seconds, again while it waited in vain. */
  call(command: CniCall['command'], pod?: ScenePod, options: CallOptions = {}): Promise<CniAnswer> {
    const once = () =>
      execCni({
        binary: executablePath(options.plugin ?? 'tke-route-eni'),
        command,
        conf: options.conf ?? this.#confFor(options.plugin),
        netns: this.netns.path,
        env: { ...(pod === undefined ? {} : envOf(pod)), CNI_PATH: binDirOf('tke-route-eni'), ...options.env },
      });
    return command === 'STATUS' ? callInTime(once) : once();
  }

  /** Starts a call and returns the process, for callers that do not wait for its end. The caller stops it. */
  start(command: CniCall['command'], pod: ScenePod, options: CallOptions = {}): Child {
    const conf = join(this.dir, `${pod.containerId}.json`);
    writeFileSync(conf, JSON.stringify(options.conf ?? this.conf()));
    const binary = executablePath(options.plugin ?? 'tke-route-eni');
    // Standard input must end, or the executable waits for more of it.
    return this.netns.start(['sh', '-c', 'exec "$0" < "$1"', binary, conf], {
      env: { ...childEnv(), ...envOf(pod), CNI_COMMAND: command, CNI_PATH: binDirOf('tke-route-eni') },
    });
  }

  /** Makes a sandbox and gives it its network. @throws Error with the answer when ADD fails */
  async addPod(options: PodOptions & CallOptions = {}): Promise<AttachedPod> {
    return this.add(await this.newPod(options), options);
  }

  /** Gives a sandbox its network. @throws Error with the answer when ADD fails */
  async add(pod: ScenePod, options: CallOptions = {}): Promise<AttachedPod> {
    const answer = await this.call('ADD', pod, options);
    this.#attached.set(keyOf(pod), { pod, plugin: options.plugin });
    if (answer.exitCode !== 0 || answer.result === undefined) throw new Error(`ADD failed: ${answer.stdout}`);
    const ips = ipsOf(answer.result);
    return { ...pod, result: answer.result, ips, ip: ips[0] ?? '' };
  }

  /** Takes sandboxes' networks away by the plugin that gave them. @throws Error with the answer when a DEL fails */
  async delete(...pods: readonly ScenePod[]): Promise<void> {
    const answers = await Promise.all(pods.map((pod) => this.call('DEL', pod, this.#pluginOf(pod))));
    const failed = answers.find((answer) => answer.exitCode !== 0);
    if (failed !== undefined) throw new Error(`DEL failed: ${failed.stdout}`);
    for (const pod of pods) this.#attached.delete(keyOf(pod));
  }

  /** Takes away the networks of all sandboxes that `add` was called for and `delete` was not. */
  async deleteAll(): Promise<void> {
    await this.delete(...[...this.#attached.values()].map(({ pod }) => pod));
  }

  #grScope(): Pick<InvariantScope, 'podCidrs' | 'grWiring'> {
    const cidr = this.flags['pod-cidr'];
    if (typeof cidr !== 'string') return {};
    const isUsed = this.flags['default-network'] === 'tke-bridge';
    return {
      podCidrs: [cidr],
      ...(isUsed ? { grWiring: this.flags['gr-wiring'] === 'routed' ? 'routed' : 'bridge' } : {}),
    };
  }

  /** As a runtime that chains by Pod: whoever was asked for the network is asked to take it away. */
  #pluginOf(pod: ScenePod): CallOptions {
    const plugin = this.#attached.get(keyOf(pod))?.plugin;
    return plugin === 'tke-direct-eni' ? { plugin } : {};
  }

  #confFor(plugin: CallOptions['plugin']): JsonObject {
    return this.conf(plugin === 'tke-direct-eni' ? { name: plugin, type: plugin } : {});
  }

  /** Files that executables left for an agent that did not answer. */
  spooled(): readonly string[] {
    try {
      return readdirSync(join(dirname(this.agent.socketPath), 'deletions'));
    } catch {
      return [];
    }
  }

  /** Waits until the agent has done every DEL that was left for it. */
  async awaitDrained(): Promise<void> {
    await waitUntil(() => this.spooled().length === 0, {
      what: `no spooled DEL on ${this.name}`,
      explain: () => `${this.spooled().join(' ')}\n${this.agent.logs().slice(-2_000)}`,
    });
  }

  /** Names of the node's links that are host sides of Pods, sorted. */
  async hostVeths(): Promise<readonly string[]> {
    const links = await this.netns.ipJson('link', 'show', 'type', 'veth');
    return links
      .map((link) => String(link['ifname']))
      .filter((name) => name.startsWith('eni'))
      .sort();
  }

  /** What the kernel holds of an address anywhere on the node: routes of all tables and rules, as text. */
  async tracesOf(ip: string): Promise<readonly string[]> {
    const family = ip.includes(':') ? '-6' : '-4';
    const routes = await this.netns.ipJson(family, 'route', 'show', 'table', 'all');
    const rules = await this.netns.ipJson(family, 'rule');
    // What refuses packets to an address of the node is there with and without a Pod.
    const isOfPod = (item: JsonObject): boolean =>
      [item['dst'], item['src']].includes(ip) && item['table'] !== String(TABLE_PODLESS);
    return [...routes, ...rules].filter(isOfPod).map((item) => JSON.stringify(item));
  }

  /** What the invariant checker finds wrong on this node. */
  async violations(): Promise<readonly string[]> {
    const { netns, ruleMode, enis, directEnis } = this;
    const found = await findViolations({
      ...{ netns, ruleMode, enis, directEnis, stateDir: this.agent.stateDir },
      ...this.#grScope(),
    });
    return found.map((violation) => `${this.name}: ${violation}`);
  }
}

function envOf(pod: ScenePod): Readonly<Record<string, string>> {
  return {
    CNI_CONTAINERID: pod.containerId,
    CNI_NETNS: pod.netns.path,
    CNI_IFNAME: pod.ifName,
    ...(pod.args === undefined ? {} : { CNI_ARGS: pod.args }),
  };
}

function keyOf({ containerId, ifName }: ScenePod): string {
  return `${containerId}/${ifName}`;
}
