import type { KubeObject } from '../../../sim/kube-api/object.ts';
import type { StoreEvent } from '../../../sim/kube-api/store.ts';
import type { CloudHost, RequestMoment } from '../../../sim/vpc/api/host.ts';
import type { Told } from '../life.ts';
import type { Sandbox } from '../standins/kubelet.ts';
import type { Streams } from '../streams.ts';
import type { WholeAgent } from '../whole-agent.ts';

/** A machine, as auditors look at it. */
type AuditedMachine = {
  readonly name: string;
  readonly instanceId: string;
  readonly isOff: boolean;
  readonly agent: { readonly addresses: readonly string[] };
  /** The real agent, where one runs. */
  readonly whole: WholeAgent | undefined;
  readonly kubelet: { readonly sandboxes: ReadonlyMap<string, Sandbox> };
  usedOn(eniId: string): readonly string[];
};

/** A world, as auditors look at it: its models, and no program. */
export type AuditedWorld = {
  readonly time: { readonly nowMs: number };
  readonly streams: Streams;
  readonly host: CloudHost;
  readonly machines: readonly AuditedMachine[];
  /** Of the agents. */
  readonly cooldownMs: number;
  /** ENIs that somebody detached in the cloud, with the ids of their instances; they leave it once they are back. */
  readonly detachedByHand: Map<string, string>;
  readonly network: {
    /** Whether there are extenders. */
    readonly isUsed: boolean;
  };
  /** Who makes the change of the store that is just being made. */
  readonly writer: string;
  objects(plural: string): readonly KubeObject[];
  violate(auditor: string, text: string, about?: readonly string[]): void;
};

/** A cloud call, as a life sends it. */
export type SentCall = {
  readonly life: string;
  readonly action: string;
  readonly request: Readonly<Record<string, unknown>>;
};

/** Looks for what must not be. A member that is absent looks at nothing there. */
export type Auditor = {
  readonly name: string;
  /** The store changed. */
  readonly change?: (plural: string, event: StoreEvent) => void;
  /** A life of this name hears of objects of the API server. */
  readonly told?: (life: string, told: Told) => void;
  /** A life sends a call to the cloud. */
  readonly sent?: (call: SentCall) => void;
  /** A call succeeded. */
  readonly answered?: (call: SentCall) => void;
  /** A call reaches the cloud. */
  readonly arrives?: (request: RequestMoment) => void;
  /** An agent is about to change something on its machine: the call, as `link.addPair` or `journal.putLease`, and its values. */
  readonly changes?: (machine: string, call: string, values: readonly unknown[]) => void;
  /** Half a second has passed. */
  readonly step?: () => void;
  /** All objects went back to an older state. */
  readonly restored?: () => void;
  /** Lists what is not as it must be when nothing is under way any more. */
  readonly rest?: () => Iterable<string>;
};

/** Opens an auditor of a world. */
export type OpenAuditor = (world: AuditedWorld) => Auditor;

/** Reports whether an object is of somebody who writes what is wrong, by its name: it may wait. */
export function isOfWrongWriter(name: string): boolean {
  return name.startsWith('wrong-');
}
