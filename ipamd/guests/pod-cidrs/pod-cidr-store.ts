import { isDeepStrictEqual } from 'node:util';
import {
  POD_CIDRS_CONFIG_MAP,
  type PodCidrRecord,
  readPodCidrRecord,
  renderPodCidrRecord,
} from '../../../crd/pod-cidr-record.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { CONFIG_MAPS } from '../../../kube/resource-types.ts';

/** What a term of a leader records. */
type TermRecord = Omit<PodCidrRecord, 'term'>;

/** The record of a later term was found: this process leads no more, or its term has begun again. */
export class OutdatedTerm extends Error {}

/**
 * The record of podCIDRs in the API server, as one term of a leader has it. A block is in it before a Node gets it, and
 * each write is guarded: so the next leader reads every block that may be on a Node, whatever became of the write there.
 */
export class PodCidrStore {
  readonly #kube: KubeClient;
  readonly #ref: { readonly namespace: string; readonly name: string };
  #term = 0;
  #read: KubeObject | undefined;
  #written: TermRecord | undefined;

  constructor(kube: KubeClient, namespace: string) {
    this.#kube = kube;
    this.#ref = { namespace, name: POD_CIDRS_CONFIG_MAP };
  }

  /** Reads the record of the former term; undefined when there is none, or none that is readable. */
  async load(signal: AbortSignal): Promise<PodCidrRecord | undefined> {
    this.#read = await this.#kube.get(CONFIG_MAPS, this.#ref, signal);
    const record = readPodCidrRecord(this.#read?.['data']);
    this.#term = (record?.term ?? 0) + 1;
    this.#written = undefined;
    return record;
  }

  /** Reports whether the record in the API server is this one. */
  isWritten(record: TermRecord): boolean {
    return isDeepStrictEqual(record, this.#written);
  }

  /** Reports whether the record of the API server has all blocks of this one, and none of them as that of another node. */
  hasTaken(record: TermRecord): boolean {
    const written = this.#written;
    if (written === undefined) return false;
    const [taken, before, now] = [new Set(written.taken), ownersOf(written), ownersOf(record)];
    return record.taken.every((block) => taken.has(block) && (before.get(block) ?? now.get(block)) === now.get(block));
  }

  /**
   * Writes the record. It holds for the API server when this resolves.
   * @throws OutdatedTerm when another term has begun; KubeError when it may not have been written
   */
  async write(record: TermRecord, signal: AbortSignal): Promise<void> {
    const data = renderPodCidrRecord({ ...record, term: this.#term });
    for (let attempt = 1; ; attempt++) {
      try {
        this.#read = await this.#put(data, signal);
        this.#written = record;
        return;
      } catch (error) {
        if (!isKubeError(error)) throw error;
        await this.#readAgain(signal);
        if (isDeepStrictEqual(this.#read?.['data'], data)) {
          this.#written = record;
          return;
        }
        if (!isKubeError(error, 'CONFLICT', 'ALREADY_EXISTS', 'NOT_FOUND') || attempt >= ATTEMPTS) throw error;
      }
    }
  }

  async #put(data: Readonly<Record<string, string>>, signal: AbortSignal): Promise<KubeObject> {
    const read = this.#read;
    if (read !== undefined) return await this.#kube.update(CONFIG_MAPS, { ...read, data }, signal);
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: this.#ref, data };
    return await this.#kube.create(CONFIG_MAPS, object, signal);
  }

  /** Reads the object for the next attempt. @throws OutdatedTerm */
  async #readAgain(signal: AbortSignal): Promise<void> {
    const before = this.#read;
    this.#read = await this.#kube.get(CONFIG_MAPS, this.#ref, signal);
    const found = readPodCidrRecord(this.#read?.['data']);
    // What was recorded since this term read the record is not in its state: it has to begin with that. The writer may be
    // a former leader that goes on, or one that read the same record and so has the same number.
    const isMissed = this.#written === undefined && !isDeepStrictEqual(this.#read?.['data'], before?.['data']);
    if (found !== undefined && (found.term > this.#term || isMissed)) {
      throw new OutdatedTerm('another leader records podCIDRs');
    }
  }
}

/** Returns whose each block is, or was before it was freed. */
function ownersOf({ owners, held }: TermRecord): ReadonlyMap<number, string> {
  return new Map([...held, ...owners].map(({ block, node, machineID }) => [block, JSON.stringify([node, machineID])]));
}

/** Writes of people and repetitions of our own are over by then. */
const ATTEMPTS = 3;
