import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { AttachedEni } from '../../../sim/vpc/nic.ts';
import { createTestVpc, type TestVpc } from '../../../sim/vpc/vpc.ts';
import { buildExecutables } from '../../../tools/build.ts';
import { type AgentOptions, type AgentProcess, startAgent } from '../../support/agent-process.ts';
import { type CriServer, startCriServer } from '../../support/cri-server.ts';
import type { CniAnswer } from '../../support/exec-cni.ts';
import { findViolations, type InvariantScope } from '../../support/invariants.ts';
import { createTempDir, type TempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { ipsOf } from './cni-answers.ts';
import { type AttachedPod, type CallOptions, type PodOptions, SceneNode, type ScenePod } from './scene-node.ts';

/**
 * The sysctls of a node whose ICMP errors have no limit but that of `ip_error()` (five at once to a sender, then one a
 * second). `icmp_ratelimit` 0 would not do: an answer then empties the
 * bucket in which `ip_error()` counts what it answers that sender (`inet_peer_xrlim_allow()` caps it at a multiple of the
 * limit), and a packet that is refused within the next second stays unanswered.
 */
export const UNLIMITED_ICMP = { 'net/ipv4/icmp_ratemask': 0, 'net/ipv6/icmp/ratelimit': 0 } as const;

/** A node on trial: its agent may be killed, its memory damaged, its kernel changed by others. */
export type TrialSpec = {
  readonly ruleMode: 'compact' | 'per-pod';
  /** Addresses of each of the two ENIs; default 12. */
  readonly ipsPerEni?: number;
  readonly isDual?: boolean;
  /** Default true: the agent sees a runtime that lists the sandboxes. */
  readonly hasRuntime?: boolean;
  readonly flags?: NonNullable<AgentOptions['flags']>;
  /** What the runtime calls; default tke-route-eni. With tke-eni-ipamc nobody wires the Pods: addresses and rules are judged. */
  readonly plugin?: 'tke-route-eni' | 'tke-eni-ipamc' | 'tke-direct-eni';
  /** ENIs that Pods get as a whole; default none. */
  readonly directEnis?: number;
  /** GlobalRoute: the runtime's Pods get an address of this block. Default: of the ENIs. */
  readonly gr?: { readonly cidr: string; readonly wiring: 'bridge' | 'routed' };
  /** Called with the node's folder before the agent starts, to put something special in its place. */
  readonly prepare?: (dir: string) => Promise<void>;
};

/** Repair by the timer is no subject unless a test says so: what is mended in time was mended by a notification. */
const FLAGS = { 'ip-cooldown': '3s', 'gc-interval': '1h', 'repair-interval': '1h', 'add-wait': '5s' };

/** Brings up a VPC with one node of two ENIs, an agent and a stand-in runtime. The caller closes it. */
export async function openTrial(spec: TrialSpec): Promise<Trial> {
  await buildExecutables(['tke-route-eni', 'tke-eni-agent']);
  const v6 = (part: number) => (spec.isDual === true ? { cidrV6: `fd00:10:0:${part}::/64` } : {});
  const vpc = await createTestVpc({
    vpcCidrs: spec.isDual === true ? ['10.0.0.0/16', 'fd00:10::/32'] : ['10.0.0.0/16'],
    subnets: [
      { id: 'subnet-a', cidr: '10.0.1.0/24', ...v6(1) },
      { id: 'subnet-b', cidr: '10.0.2.0/24', ...v6(2) },
    ],
    nodes: [{ name: 'n1', primarySubnet: 'subnet-a' }],
  });
  const trial = new Trial(vpc, spec, createTempDir('trial'));
  try {
    await trial.open();
    return trial;
  } catch (error) {
    await trial.close();
    throw error;
  }
}

/** Made by `openTrial`. */
export class Trial {
  readonly vpc: TestVpc;
  readonly dir: TempDir;
  readonly spec: TrialSpec;
  /** Sandboxes whose ADD or DEL is under way: whether they have a lease is not yet decided. */
  readonly undecided = new Set<string>();
  enis: readonly AttachedEni[] = [];
  directEnis: readonly AttachedEni[] = [];
  ruleMode: 'compact' | 'per-pod';
  #node: SceneNode | undefined;
  #cri: CriServer | undefined;
  #agent: AgentProcess | undefined;
  #settled = 0;

  constructor(vpc: TestVpc, spec: TrialSpec, dir: TempDir) {
    this.vpc = vpc;
    this.spec = spec;
    this.dir = dir;
    this.ruleMode = spec.ruleMode;
  }

  /** Attaches ENIs, starts runtime and agent. Called once, by `openTrial`. */
  async open(): Promise<void> {
    const { isDual = false, ipsPerEni = 12 } = this.spec;
    const enis: AttachedEni[] = [];
    for (const [index, subnetId] of ['subnet-b', 'subnet-a'].entries()) {
      const eni = await this.vpc.attachEni('n1', { eniId: `eni-${index + 1}`, subnetId });
      enis.push(eni);
      if (!isDual) await this.vpc.assignIps(eni.eniId, ipsPerEni);
      else for (let count = 0; count < ipsPerEni; count++) await this.vpc.assignDual(eni.eniId);
    }
    this.enis = enis;
    const direct: AttachedEni[] = [];
    for (let count = 1; count <= (this.spec.directEnis ?? 0); count++) {
      const options = { eniId: `eni-d${count}`, subnetId: 'subnet-b', isDirect: true };
      direct.push(await this.vpc.attachEni('n1', options));
    }
    this.directEnis = direct;
    const dir = join(this.dir.path, 'n1');
    mkdirSync(dir);
    await this.spec.prepare?.(dir);
    if (this.spec.hasRuntime !== false) this.#cri = await startCriServer(this.dir.join('cri.sock'));
    const parts = { vpc: this.vpc, name: 'n1', dir, enis, flags: {} };
    this.#node = new SceneNode({ ...parts, ruleMode: this.spec.ruleMode });
    this.writeSupply();
    await this.startAgent();
  }

  /** The node, for its executables and its namespace. */
  get node(): SceneNode {
    if (this.#node === undefined) throw new Error('the trial is not open');
    return this.#node;
  }

  /** The agent that was started last. */
  get agent(): AgentProcess {
    if (this.#agent === undefined) throw new Error('no agent was started');
    return this.#agent;
  }

  /** The stand-in runtime. @throws Error in a trial without one */
  get runtime(): CriServer {
    if (this.#cri === undefined) throw new Error('this trial has no runtime');
    return this.#cri;
  }

  /** How often the invariants were found to hold. */
  get settledCount(): number {
    return this.#settled;
  }

  /** Tells the agent what the VPC has assigned now. */
  writeSupply(): void {
    this.vpc.writeSupply('n1', join(this.node.dir, 'node.yaml'));
  }

  /** Starts the agent and waits until it could serve. The one before must be gone. */
  async startAgent(options: Partial<AgentOptions> = {}): Promise<AgentProcess> {
    if (this.#agent?.child.isRunning === true) throw new Error('the agent before still runs');
    this.#agent = await startAgent({
      netns: this.node.netns,
      dir: this.node.dir,
      ...(this.#cri === undefined ? {} : { criSocket: this.#cri.socketPath }),
      ...options,
      flags: { 'rule-mode': this.ruleMode, ...FLAGS, ...this.#grFlags(), ...this.spec.flags, ...options.flags },
    });
    return this.#agent;
  }

  /** Kills the agent with SIGKILL and waits until it is gone. */
  async killAgent(): Promise<void> {
    await this.#agent?.child.stop('SIGKILL');
  }

  /** Makes a sandbox that is known to nobody yet. */
  newPod(options: PodOptions = {}): Promise<ScenePod> {
    return this.node.newPod(options);
  }

  /** ADD as the runtime does it: the sandbox is listed once it has its network. Returns the answer, whatever it is. */
  async tryAdd(pod: ScenePod): Promise<CniAnswer> {
    this.undecided.add(pod.containerId);
    const answer = await this.node.call('ADD', pod, this.#callOptions());
    if (answer.result !== undefined) this.#listSandbox(pod, ipsOf(answer.result));
    return answer;
  }

  /** ADD that must succeed. @throws Error with the answer and the agent's last words */
  async add(pod: ScenePod): Promise<AttachedPod> {
    const answer = await this.tryAdd(pod);
    if (answer.result === undefined) throw new Error(`ADD failed: ${answer.stdout}\n${this.lastWords()}`);
    const ips = ipsOf(answer.result);
    return { ...pod, result: answer.result, ips, ip: ips[0] ?? '' };
  }

  /** Makes a sandbox and gives it its network. */
  async addPod(options: PodOptions = {}): Promise<AttachedPod> {
    return this.add(await this.newPod(options));
  }

  /** DEL as the runtime does it: the sandbox is forgotten once it succeeded. Returns the answer, whatever it is. */
  async tryDelete(pod: ScenePod): Promise<CniAnswer> {
    this.undecided.add(pod.containerId);
    const answer = await this.node.call('DEL', pod, this.#callOptions());
    if (answer.exitCode === 0) this.#forgetSandbox(pod);
    return answer;
  }

  /** DEL that must succeed; then the sandbox's namespace goes too. @throws Error with the answer and the agent's last words */
  async delete(pod: ScenePod): Promise<void> {
    const answer = await this.tryDelete(pod);
    if (answer.exitCode !== 0) throw new Error(`DEL failed: ${answer.stdout}\n${this.lastWords()}`);
    await pod.netns.close();
  }

  /** What the invariants are judged by at this moment. */
  scope(): InvariantScope {
    const sandboxes = this.#cri?.sandboxes.map(({ id, ips }) => ({ id, ...(ips === undefined ? {} : { ips }) }));
    return {
      netns: this.node.netns,
      stateDir: this.agent.stateDir,
      ruleMode: this.ruleMode,
      enis: this.enis,
      directEnis: this.directEnis,
      undecided: [...this.undecided],
      ...(this.spec.gr === undefined ? {} : { podCidrs: [this.spec.gr.cidr], grWiring: this.spec.gr.wiring }),
      ...(sandboxes === undefined ? {} : { sandboxes }),
    };
  }

  /**
   * Waits until journal, kernel and runtime agree. Returns how long it took, in milliseconds.
   * @throws Error with each violation and the agent's last words when they still do not after `timeoutMs`
   */
  async settle(what: string, timeoutMs = 60_000): Promise<number> {
    const startMs = performance.now();
    let last: readonly string[] = [];
    await waitUntil(
      async () => {
        last = await findViolations(this.scope());
        return last.length === 0;
      },
      { what: `invariants ${what}`, timeoutMs, everyMs: 50, explain: () => `${last.join('\n')}\n${this.lastWords()}` },
    );
    this.#settled += 1;
    return performance.now() - startMs;
  }

  /** The end of the agent's log. */
  lastWords(): string {
    return this.#agent?.logs().split('\n').slice(-40).join('\n') ?? '';
  }

  /** Ends everything. Idempotent. */
  async close(): Promise<void> {
    try {
      await this.killAgent();
      await this.#cri?.close();
    } finally {
      await this.vpc.close();
      this.dir.close();
    }
  }

  #callOptions(): CallOptions {
    if (this.spec.plugin === 'tke-direct-eni') {
      return {
        plugin: 'tke-direct-eni',
        conf: this.node.conf({ name: 'tke-direct-eni', type: 'tke-direct-eni' }),
      };
    }
    if (this.spec.plugin !== 'tke-eni-ipamc') return {};
    const ipam = { type: 'tke-eni-ipamc', backend: this.node.conf()['backend'] };
    // As a main plugin passes it on: its own configuration, with the part for us in it.
    return { plugin: 'tke-eni-ipamc', conf: { cniVersion: '1.0.0', name: 'ptp-net', type: 'ptp', ipam } };
  }

  #grFlags(): NonNullable<AgentOptions['flags']> {
    const { gr } = this.spec;
    if (gr === undefined) return {};
    return { 'default-network': 'tke-bridge', 'pod-cidr': gr.cidr, 'gr-wiring': gr.wiring };
  }

  #listSandbox(pod: ScenePod, ips: readonly string[]): void {
    this.undecided.delete(pod.containerId);
    const { containerId: id, name: podName, namespace: podNamespace } = pod;
    this.#cri?.addSandbox({ id, podName, podNamespace, ips, netns: pod.netns.path });
  }

  #forgetSandbox(pod: ScenePod): void {
    this.undecided.delete(pod.containerId);
    this.#cri?.removeSandbox(pod.containerId);
  }
}
