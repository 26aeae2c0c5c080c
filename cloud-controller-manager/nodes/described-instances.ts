import type { CallContext, Instance } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { NodeInstances } from '../controller/node-instances.ts';
import { type CloudNode, readCloudNode } from './cloud-node.ts';
import { findVpc } from './find-vpc.ts';

type InstanceDeps = Pick<ControllerDeps, 'nodes' | 'clock' | 'log'> & {
  readonly cloud: Pick<ControllerDeps['cloud'], 'instances'>;
  readonly config: Pick<ControllerDeps['config'], 'vpcId' | 'cloudTimeoutMs'>;
};

/** What was answered about an instance last. `instance` undefined: the cloud has none, or refused. */
type Answer = { readonly instance: Instance | undefined; readonly untilMs: number };

/** Nodes that join together share requests. */
const GATHER_MS = 200;
/** The addresses of an instance change rarely. */
const PERIOD_MS = 900_000;
/** After an answer that lacks an instance, or none at all. */
const RETRY_MS = 30_000;
const CONTEXT = { priority: 'warm', owner: 'nodes' } as const;

/**
 * The instances behind all Nodes as the cloud described them. What a Node says of itself, its kubelet may have written: its
 * address and the VPC count as far as its instance has them.
 */
export class DescribedInstances implements NodeInstances {
  readonly #deps: InstanceDeps;
  readonly #changed: ChangeSignal;
  readonly #answers = new Map<string, Answer>();
  readonly #listeners = new Set<() => void>();
  /** The VPC while Nodes had instances. */
  #lastVpcId: string | undefined;
  #isReady = false;

  constructor(deps: InstanceDeps) {
    this.#deps = deps;
    this.#changed = new ChangeSignal(deps.clock);
  }

  /** The VPC of the cluster: the configured one, or that of most instances; undefined while none is known. */
  get vpcId(): string | undefined {
    const { config, nodes } = this.#deps;
    if (config.vpcId !== '') return config.vpcId;
    const votes = [...nodes.values()].map(readCloudNode).flatMap((node) => {
      const vpcId = this.of(node)?.vpcId;
      return vpcId === undefined ? [] : [{ vpcId, createdAt: node.createdAt }];
    });
    this.#lastVpcId = findVpc('', votes) ?? this.#lastVpcId;
    return this.#lastVpcId;
  }

  /** Returns the instance that a Node names, as it was described last; undefined: it was not, or the Node names none. */
  of(node: Pick<CloudNode, 'providerId'>): Instance | undefined {
    const id = instanceIdOf(node);
    return id === undefined ? undefined : this.#answers.get(id)?.instance;
  }

  /** Takes over what another part of this program was answered. */
  note(instances: Iterable<Instance>): void {
    let isNew = false;
    for (const instance of instances) isNew = this.#keep(instance.instanceId, instance, PERIOD_MS) || isNew;
    if (isNew) this.#notify();
  }

  /** Calls `listener` when an instance is described that was not, or in another way. Returns what ends that. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves when each Node that is there at the start was asked for once, or when `signal` aborts. */
  async ready(signal: AbortSignal): Promise<void> {
    while (!this.#isReady && !signal.aborted) await this.#changed.wait(PERIOD_MS, signal);
  }

  /** Describes what is not known, or was described long ago, until aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { nodes, clock } = this.#deps;
    const changed = new ChangeSignal(clock);
    const stop = nodes.subscribe(({ after }) => {
      const id = after === undefined ? undefined : instanceIdOf(readCloudNode(after));
      if (id !== undefined && !this.#answers.has(id)) changed.notify();
    });
    try {
      await nodes.synced(signal);
      while (!signal.aborted) {
        await this.#describe(signal);
        if (signal.aborted) return;
        if (!this.#isReady) {
          this.#isReady = true;
          this.#changed.notify();
        }
        const dueMs = Math.min(PERIOD_MS, ...[...this.#answers.values()].map(({ untilMs }) => untilMs - this.#nowMs()));
        if (this.#dueIds().length === 0) await changed.wait(Math.max(0, dueMs), signal);
        await clock.sleep(GATHER_MS, signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      stop();
    }
  }

  async #describe(signal: AbortSignal): Promise<void> {
    const { cloud, log, config } = this.#deps;
    const context: CallContext = { ...CONTEXT, signal, timeoutMs: config.cloudTimeoutMs };
    let isNew = false;
    let failure: unknown;
    // Each on its own, in requests that they share: one that the cloud refuses must not hold up others.
    await Promise.all(
      this.#dueIds().map(async (id) => {
        try {
          const [instance] = await cloud.instances.describe([id], context);
          isNew = this.#keep(id, instance, instance === undefined ? RETRY_MS : PERIOD_MS) || isNew;
        } catch (error) {
          if (!isCloudError(error)) throw error;
          failure = error;
          this.#keep(id, this.#answers.get(id)?.instance, RETRY_MS);
        }
      }),
    );
    if (failure !== undefined) log.warn('instances of Nodes were not described, will try again', { error: failure });
    if (isNew) this.#notify();
  }

  /** Returns the ids to ask for; forgets those that no Node names. */
  #dueIds(): readonly string[] {
    const named = new Set([...this.#deps.nodes.values()].flatMap((node) => instanceIdOf(readCloudNode(node)) ?? []));
    for (const id of this.#answers.keys()) if (!named.has(id)) this.#answers.delete(id);
    const nowMs = this.#nowMs();
    return [...named].filter((id) => (this.#answers.get(id)?.untilMs ?? nowMs) <= nowMs);
  }

  /** An instance that an answer lacks stays as it was described: the cloud may be behind. @returns whether it is another one now */
  #keep(id: string, instance: Instance | undefined, forMs: number): boolean {
    const before = this.#answers.get(id)?.instance;
    this.#answers.set(id, { instance: instance ?? before, untilMs: this.#nowMs() + forMs });
    return instance !== undefined && digestOf(instance) !== digestOf(before);
  }

  #nowMs(): number {
    return this.#deps.clock.monotonicMs();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

function instanceIdOf({ providerId }: Pick<CloudNode, 'providerId'>): string | undefined {
  return providerId.kind === 'instance' ? providerId.instanceId : undefined;
}

function digestOf(instance: Instance | undefined): string {
  return instance === undefined ? '' : `${instance.vpcId} ${instance.privateIps.join()}`;
}
