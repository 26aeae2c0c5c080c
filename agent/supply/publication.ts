import type { ExclusiveSpec, ObservedExclusive } from '../exclusive/decide-exclusive-publication.ts';
import type { Offer } from '../journal/journal-content.ts';

/** One assignment of an address. */
export type AssignedIp = { readonly ip: string; readonly assignmentId: string };

/** The fields of a NodeENIConfig that an agent of any role writes. */
export type ReadinessSpec = {
  /** Extended resources that the node serves now. */
  readonly readyResources: readonly string[];
  /**
   * Name of the journal. An object with another name was last written by an agent whose offers are not known here, and
   * a write of that agent may still be on its way. Such an object is not used before our own write succeeded.
   */
  readonly life: string;
  /** The highest supply epoch that was ever in force; absent: it stays as it is. */
  readonly observedEpoch?: number;
};

/** The fields of a NodeENIConfig that an agent with the role `full` owns. */
export type AgentSpec = ReadinessSpec & {
  /** Desired number of addresses: in use + cooling + waiting + warm. */
  readonly desired: number;
  /** Offers, sorted by IP as text. */
  readonly releasable: readonly AssignedIp[];
  /** The fields about whole ENIs; absent: they stay as they are. */
  readonly exclusive?: ExclusiveSpec;
  /** The highest supply epoch that was ever in force; never below one that an agent of this node wrote. */
  readonly observedEpoch: number;
};

/** Epoch of a status that cannot be read; equal to no epoch that is ever in force. */
export const UNREADABLE = -2;

/** The part of the last observed NodeENIConfig that publication depends on. */
export type ObservedNec = {
  /** Values of the agent's own fields; undefined where the field is absent. */
  readonly spec: {
    readonly desired: number | undefined;
    readonly releasable: readonly AssignedIp[];
    readonly observedEpoch: number | undefined;
    readonly readyResources: readonly string[];
    readonly life: string | undefined;
  };
  /** The fields about whole ENIs. */
  readonly exclusive?: ObservedExclusive;
  /** 0 before ipamd wrote one; `UNREADABLE` when the status is malformed. */
  readonly supplyEpoch: number;
  /** Addresses that the attached ENIs could have besides theirs; absent: not known. */
  readonly eniPlaces?: number;
  /** State of each address in the status, by IP. */
  readonly addresses: ReadonlyMap<string, { readonly assignmentId: string; readonly state: 'assigned' | 'releasing' }>;
};

/** When surplus was released last, and how much may be released at a time. */
export type ReleasePacing = {
  /** Milliseconds since boot. */
  readonly nowMs: number;
  /** When the last paced offer was made, or the agent started; milliseconds since boot. */
  readonly lastReleaseMs: number;
  /** All surplus at a time, not one address. */
  readonly isQuick: boolean;
  /** Interval between paced offers, milliseconds; default the product's two minutes. */
  readonly everyMs?: number;
};

/** How long demand that is not urgent may wait for more to be written with it. */
export type Gathering = {
  /** At most so long, milliseconds. */
  readonly forMs: number;
  /** Since when something has waited, milliseconds since boot; absent: nothing has. */
  readonly sinceMs?: number | undefined;
  /** When the demand was last written, milliseconds since boot. */
  readonly lastWriteMs: number;
};

/** What to write, and the changes of journal and pool that go with it. */
export type Publication = {
  readonly spec: AgentSpec;
  /** True when the object holds something else that does not wait, or has waited long enough: a write is due. */
  readonly isDue: boolean;
  /** Since when something that is not urgent has waited to be written, milliseconds since boot; absent: nothing has. */
  readonly gatheringSinceMs?: number;
  /** To be journaled, then withdrawn from use, before the write. */
  readonly toOffer: readonly Offer[];
  /** Some of `toOffer` were paced: the interval starts again. */
  readonly isPaced: boolean;
  /** ipamd acted on them: their records may be erased now, whatever the result of the write. */
  readonly toErase: readonly Offer[];
  /**
   * Offers that this write takes out. Once it succeeded **and changed the object**, their records are erased and their
   * addresses return to use: then no older write of ours can put the offer back.
   */
  readonly toRestore: readonly Offer[];
  /** When more surplus may be released, milliseconds since boot; absent when there is none. */
  readonly nextReleaseMs?: number;
};
