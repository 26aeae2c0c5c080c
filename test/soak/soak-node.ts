import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DEFAULT_BACKOFF_LIMITS } from '../../agent/repair/decide-backoff.ts';
import type { NetnsView } from '../../sim/support/netns.ts';
import { type AgentProcess, startAgent } from '../support/agent-process.ts';
import { type CriServer, startCriServer } from '../support/cri-server.ts';
import { findViolations } from '../support/invariants.ts';
import type { Door } from '../system/door.ts';
import type { SystemMember, SystemMemberParts } from '../system/system-member.ts';
import type { VpcCloud } from '../system/vpc-cloud.ts';
import { CniRuntime } from './runtime.ts';
import type { Slot } from './slot.ts';

/** Port of the agent's metrics, on the node's loopback. */
export const METRICS_PORT = 61680;
/** Longest time that an agent may take to be there again, on a machine that is busy. */
const RESTART_MS = 30_000;
/** An unanswered call may be noticed a moment after the agent is back. */
const OUTAGE_MARGIN_MS = 500;
/** A change by others is mended sooner, on a machine that is busy too. */
const MENDED_MS = 6_000;
/** Others who insist on a change may leave the agent waiting; after its longest wait an ENI is not ready for a while. */
const SETTLED_MS = DEFAULT_BACKOFF_LIMITS.longestMs + DEFAULT_BACKOFF_LIMITS.calmMs + MENDED_MS;
/** Enough of an agent's last words for whoever looks into a failure. */
const LOG_CHARS = 4_000_000;

type Outage = { readonly fromMs: number; toMs: number };

/** A node of the soak: a real agent that is watched and started again, and places for Pods. */
export class SoakNode implements SystemMember {
  readonly name: string;
  readonly cores: number;
  readonly kube: Door;
  readonly cri: CriServer;
  readonly netns: NetnsView;
  readonly runtime: CniRuntime;
  readonly slots: Slot[] = [];
  /** How many Pods are wanted. */
  wanted = 0;
  /** While it is set no call begins. */
  isPaused = false;
  /** Told when an agent ended by itself. */
  onCrash: (text: string) => void = () => undefined;
  #parts: SystemMemberParts;
  #cloud: VpcCloud;
  #agent: AgentProcess | undefined;
  #expected = new WeakSet<AgentProcess>();
  #outages: Outage[] = [];
  #earlier = '';
  #turn: Promise<unknown> = Promise.resolve();
  #changes: number[] = [];
  #isClosing = false;

  constructor(parts: SystemMemberParts, cri: CriServer) {
    this.name = parts.name;
    this.cores = parts.cores;
    this.kube = parts.kube;
    this.cri = cri;
    this.#parts = parts;
    this.#cloud = parts.cloud;
    this.netns = parts.cloud.vpc.node(parts.name).netns;
    this.runtime = new CniRuntime(join(parts.dir, 'agent.sock'));
  }

  /** The Pods that have an address by the harness's own book. */
  get pods(): readonly { readonly name: string; readonly ip: string }[] {
    return this.slots.flatMap(({ state }) => (state.kind === 'live' ? [{ name: state.podName, ip: state.ip }] : []));
  }

  /** The running agent, or the one that ran last. @throws Error before the first start */
  get agent(): AgentProcess {
    if (this.#agent === undefined) throw new Error(`${this.name}: no agent was started`);
    return this.#agent;
  }

  /** Starts the agent and watches it: one that ends by itself is told of and started again. */
  async startAgent(): Promise<void> {
    if (this.#agent !== undefined) this.#earlier = (this.#earlier + this.#agent.logs()).slice(-LOG_CHARS);
    const { dir, name, kubeconfig, flags } = this.#parts;
    const agent = await startAgent({
      netns: this.netns,
      dir,
      supplyFile: 'none',
      criSocket: this.cri.socketPath,
      until: 'started',
      flags: {
        'node-name': name,
        'supply-source': 'cluster',
        kubeconfig,
        'rule-mode': 'compact',
        'metrics-address': `127.0.0.1:${METRICS_PORT}`,
        ...flags,
      },
    });
    this.#agent = agent;
    void agent.child.exited.then(({ code, signal }) => this.#ended(agent, `exit ${code ?? signal}`));
    await agent.awaitUntil('listening', RESTART_MS);
    this.#endOutage();
    this.runtime.close();
  }

  /** Kills the agent and starts it again; once more after `fuseMs` when told so. One at a time. */
  killAgent(options: { readonly twice: boolean; readonly fuseMs: number }): Promise<void> {
    return this.inTurn(async () => {
      await this.#kill();
      if (options.twice) {
        const started = this.startAgent().catch((error: unknown) => error);
        await new Promise((resolve) => setTimeout(resolve, options.fuseMs));
        await this.#kill();
        await started;
      }
      await this.startAgent();
    });
  }

  /** Does something to the agent, or to the node as a whole, after whatever else is done to it now. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Whether the agent was away at some time of a span: then a call in it may stay without an answer. */
  wasAway(fromMs: number, toMs: number): boolean {
    return this.#outages.some((outage) => outage.fromMs <= toMs && outage.toMs + OUTAGE_MARGIN_MS >= fromMs);
  }

  /** Notes that somebody else changes the kernel now. */
  noteChange(): void {
    this.#changes.push(performance.now());
  }

  /** Whether somebody else changed the kernel in a span, or so little before that it may not be mended yet. */
  wasChanged(fromMs: number, toMs: number): boolean {
    return this.#wasChanged(fromMs - MENDED_MS, toMs);
  }

  /** Whether somebody else changed the kernel in a span, or so little before that an ENI may not be ready again yet. */
  wasUnsettled(fromMs: number, toMs: number): boolean {
    return this.#wasChanged(fromMs - SETTLED_MS, toMs);
  }

  #wasChanged(fromMs: number, toMs: number): boolean {
    return this.#changes.some((atMs) => atMs <= toMs && atMs >= fromMs);
  }

  /** Files that wait for the agent's DEL. */
  spooled(): readonly string[] {
    const folder = join(dirname(this.agent.socketPath), 'deletions');
    return existsSync(folder) ? readdirSync(folder) : [];
  }

  /**
   * What the invariant checker finds wrong on this node, judged by the ENIs that the VPC has attached to it now; with
   * `supplied`, by those of them that the supply names.
   */
  async violations(supplied?: ReadonlySet<string>): Promise<readonly string[]> {
    const { vpc } = this.#cloud;
    const ids = vpc.enisOf(this.name).filter((eniId) => supplied?.has(eniId) ?? true);
    const enis = await Promise.all(ids.map((eniId) => vpc.eni(eniId)));
    const found = await findViolations({
      netns: this.netns,
      ruleMode: 'compact',
      enis,
      stateDir: this.agent.stateDir,
      sandboxes: this.slots.flatMap(({ state, netns }) =>
        state.kind === 'live' ? [{ id: state.containerId, ips: [state.ip], netns: netns.path }] : [],
      ),
    });
    return found.map((line) => `${this.name}: ${line}`);
  }

  /** Path of the agent's journal. */
  get journalPath(): string {
    return join(this.agent.stateDir, 'journal.db');
  }

  /** What every agent of this node wrote, the last megabytes of it. */
  logs(): string {
    return this.#earlier + (this.#agent?.logs() ?? '');
  }

  /** Ends the agent and the runtime. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#kill();
    this.runtime.close();
    await this.cri.close();
  }

  async #kill(): Promise<void> {
    const agent = this.#agent;
    if (agent === undefined) return;
    this.#expected.add(agent);
    this.#beginOutage();
    await agent.child.stop('SIGKILL');
  }

  #ended(agent: AgentProcess, how: string): void {
    if (this.#expected.has(agent) || this.#isClosing) return;
    this.#beginOutage();
    this.onCrash(`${this.name}: the agent ended by itself: ${how}\n${agent.logs().slice(-3_000)}`);
    void this.inTurn(() => this.startAgent()).catch((error: unknown) => this.onCrash(String(error)));
  }

  #beginOutage(): void {
    this.#outages.push({ fromMs: performance.now(), toMs: Number.POSITIVE_INFINITY });
  }

  #endOutage(): void {
    for (const outage of this.#outages) outage.toMs = Math.min(outage.toMs, performance.now());
  }
}

/** Makes a node of the soak. */
export async function makeSoakNode(parts: SystemMemberParts): Promise<SoakNode> {
  return new SoakNode(parts, await startCriServer(join(parts.dir, 'cri.sock')));
}
