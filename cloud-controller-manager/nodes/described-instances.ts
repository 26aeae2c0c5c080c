import type { CallContext, Instance } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { CLUSTER_VPC_ANNOTATION } from '../../crd/names.ts';
import type { TermNotes } from '../../kube/election/term.ts';
import type { VpcFault } from '../../pod-routes/routes-elsewhere.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { CcmNode } from '../controller/ccm-node.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { NodeInstances } from '../controller/node-instances.ts';
import { type CloudNode, readCloudNode } from './cloud-node.ts';
import { decideVpc, findContradiction, type VpcWitness } from './decide-vpc.ts';
import { readSeen } from './seen-instance.ts';

type InstanceDeps = Pick<ControllerDeps, 'nodes' | 'clock' | 'log'> & {
  readonly cloud: Pick<ControllerDeps['cloud'], 'instances'>;
  readonly config: Pick<ControllerDeps['config'], 'vpcId' | 'cloudTimeoutMs'>;
  /** Of the lock, which no kubelet writes; absent where there is none. */
  readonly notes?: TermNotes;
  /** Called when `vpcFault` has changed, with its text. */
  readonly onVpcFault: (message: string | undefined) => void;
};

/** What was answered about an instance last. */
type Answer = {
  /** Undefined: it was never described. */
  readonly instance: Instance | undefined;
  /** The call failed, or the answer has the instance without what counts of it. */
  readonly isFailure: boolean;
  readonly untilMs: number;
};

/** Nodes that join together share requests. */
const GATHER_MS = 200;
/** The addresses of an instance change rarely. */
const PERIOD_MS = 900_000;
/** After an answer that lacks an instance or what counts of it, or none at all. */
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
  /** The VPC, once it was found with certainty, by this leader or a former one. */
  #foundVpcId: string | undefined;
  /** As it is on the lock. */
  #notedVpcId: string | undefined;
  #vpcFault: VpcFault | undefined;
  #isReady = false;

  constructor(deps: InstanceDeps) {
    this.#deps = deps;
    this.#changed = new ChangeSignal(deps.clock);
    const [noted] = /^vpc-[a-z0-9]{1,32}$/.exec(deps.notes?.read(CLUSTER_VPC_ANNOTATION) ?? '') ?? [];
    this.#foundVpcId = noted;
    this.#notedVpcId = noted;
  }

  /** The VPC of the cluster: the configured one, or what is decided of the instances; undefined while none is known. */
  get vpcId(): string | undefined {
    const { config } = this.#deps;
    if (config.vpcId !== '') return config.vpcId;
    const { vpcId, isCertain } = decideVpc(this.#foundVpcId, this.#witnesses());
    if (isCertain) this.#foundVpcId = vpcId;
    return vpcId;
  }

  /** As of the last round of descriptions. */
  get vpcFault(): VpcFault | undefined {
    return this.#vpcFault;
  }

  #witnesses(): readonly VpcWitness[] {
    return [...this.#deps.nodes.values()].map(readCloudNode).flatMap((node) => {
      const id = instanceIdOf(node);
      const answer = this.#answers.get(id ?? '');
      if (id === undefined || (answer?.instance === undefined && !node.isOurs)) return [];
      const seen = readSeen(node);
      return {
        createdAt: node.createdAt,
        describedIn: answer?.instance?.vpcId,
        isUnanswered: answer?.isFailure ?? true,
        isAnnotated: node.isOurs && !node.isUninitialized,
        seenIn: seen?.instanceId === id ? seen.vpcId : undefined,
      };
    });
  }

  /** Returns the instance that a Node names, as it was described last; undefined: it was not, or the Node names none. */
  of(node: Pick<CloudNode, 'providerId'>): Instance | undefined {
    const id = instanceIdOf(node);
    return id === undefined ? undefined : this.#answers.get(id)?.instance;
  }

  /** Takes over what another part of this program was answered. */
  note(instances: Iterable<Instance>): void {
    let isNew = false;
    for (const instance of instances) isNew = this.#keep(instance.instanceId, instance) || isNew;
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
    const idOf = (node: CcmNode | undefined) => (node === undefined ? undefined : instanceIdOf(readCloudNode(node)));
    const stop = nodes.subscribe(({ before, after }) => {
      if (idOf(before) !== idOf(after)) changed.notify();
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
        await this.#noteVpc(signal);
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
    const vpcIdBefore = this.vpcId;
    let isNew = false;
    let failure: unknown;
    // Each on its own, in requests that they share: one that the cloud refuses must not hold up others.
    await Promise.all(
      this.#dueIds().map(async (id) => {
        try {
          const [instance] = await cloud.instances.describe([id], context);
          isNew = this.#keep(id, instance) || isNew;
        } catch (error) {
          if (!isCloudError(error)) throw error;
          failure = error;
          // The cloud does not take the id itself, as one that a kubelet made up: no answer will come.
          this.#keep(id, undefined, !/\.Malformed$/.test(error.code));
        }
      }),
    );
    if (failure !== undefined) log.warn('instances of Nodes were not described, will try again', { error: failure });
    const isOtherFault = this.#checkVpc();
    if (isNew || isOtherFault || this.vpcId !== vpcIdBefore) this.#notify();
  }

  /** Compares --vpc-id with the instances. @returns whether that shows something else now */
  #checkVpc(): boolean {
    const { vpcId } = this.#deps.config;
    if (vpcId === '') return false;
    const before = this.#vpcFault;
    const actualId = findContradiction(vpcId, before?.actualId, this.#witnesses());
    if (actualId === before?.actualId) return false;
    const message = `--vpc-id is ${vpcId}, and no instance of a Node is in it: most are in ${actualId}. Correct it, or leave it out`;
    this.#vpcFault = actualId === undefined ? undefined : { actualId, message };
    this.#deps.onVpcFault(this.#vpcFault?.message);
    return true;
  }

  /** Leaves the VPC to the next leader. */
  async #noteVpc(signal: AbortSignal): Promise<void> {
    const { notes, log } = this.#deps;
    const vpcId = this.#foundVpcId;
    if (notes === undefined || vpcId === undefined || vpcId === this.#notedVpcId || signal.aborted) return;
    try {
      await notes.write(CLUSTER_VPC_ANNOTATION, vpcId);
      this.#notedVpcId = vpcId;
    } catch (error) {
      if (!signal.aborted) log.warn('the VPC of the cluster was not written to the lock, will try again', { error });
    }
  }

  /** Returns the ids to ask for; forgets those that no Node names. */
  #dueIds(): readonly string[] {
    const named = new Set([...this.#deps.nodes.values()].flatMap((node) => instanceIdOf(readCloudNode(node)) ?? []));
    for (const id of this.#answers.keys()) if (!named.has(id)) this.#answers.delete(id);
    const nowMs = this.#nowMs();
    return [...named].filter((id) => (this.#answers.get(id)?.untilMs ?? nowMs) <= nowMs);
  }

  /**
   * An instance that an answer lacks, or has without VPC or addresses, stays as it was described: the cloud may be behind.
   * @returns whether it is another one now
   */
  #keep(id: string, answered: Instance | undefined, isFailure = answered !== undefined && !isWhole(answered)): boolean {
    const before = this.#answers.get(id)?.instance;
    const instance = answered !== undefined && isWhole(answered) ? answered : undefined;
    const untilMs = this.#nowMs() + (instance === undefined ? RETRY_MS : PERIOD_MS);
    this.#answers.set(id, { instance: instance ?? before, isFailure, untilMs });
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

/** Every instance has both: an answer without them is one of a service that does not work. */
function isWhole({ vpcId, privateIps }: Instance): boolean {
  return vpcId !== '' && privateIps.length > 0;
}

function digestOf(instance: Instance | undefined): string {
  return instance === undefined ? '' : `${instance.vpcId} ${instance.privateIps.join()}`;
}
