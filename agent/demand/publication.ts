import type { DirectSpec, SeenDirect } from '../direct/decide-direct-publication.ts';
import type { Offer } from '../journal/journal-content.ts';

/** Names one assignment of an address. */
export type AssignedIp = { readonly ip: string; readonly assignmentId: string };

/** The fields of a NodeENIConfig that the agent owns. */
export type AgentSpec = {
  /** Addresses wanted: in use + cooling + waiting + warm. */
  readonly desired: number;
  /** Offers, by IP in the order of their text. */
  readonly releasable: readonly AssignedIp[];
  /** What is said of whole ENIs; absent: those fields stay as they are. */
  readonly direct?: DirectSpec;
  /** The highest supply epoch ever put in force; never below one that an agent of this node wrote. */
  readonly observedEpoch: number;
  /** Extended resources that the node serves now. */
  readonly readyResources: readonly string[];
  /**
   * Names the journal. An object that bears another name was last written by an agent whose offers this one does not
   * know, and a write of that agent may still be under way: nothing of it is used until our own write was taken.
   */
  readonly life: string;
};

/** Stands for the epoch of a status that cannot be read: equal to none that is ever in force. */
export const UNREADABLE = -2;

/** A NodeENIConfig as last seen, as far as publication depends on it. */
export type SeenNec = {
  /** What the agent's own fields say; absent fields are undefined. */
  readonly spec: {
    readonly desired: number | undefined;
    readonly releasable: readonly AssignedIp[];
    readonly observedEpoch: number | undefined;
    readonly readyResources: readonly string[];
    readonly life: string | undefined;
  };
  /** What is said of whole ENIs. */
  readonly direct?: SeenDirect;
  /** 0 before ipamd wrote any; `UNREADABLE` when its status is not what it must be. */
  readonly supplyEpoch: number;
  /** What status says of each address, by IP. */
  readonly addresses: ReadonlyMap<string, { readonly assignmentId: string; readonly state: 'assigned' | 'releasing' }>;
};

/** When surplus was given back last, and how much may go at a time. */
export type ReleasePacing = {
  /** Since boot. */
  readonly nowMs: number;
  /** When the last paced offer was made, or the agent started. */
  readonly lastMs: number;
  /** All surplus at a time, not one address. */
  readonly isQuick: boolean;
  /** How far two of them are apart; default the product's two minutes. */
  readonly everyMs?: number;
};

/** What to write, and what goes with the write. */
export type Publication = {
  readonly spec: AgentSpec;
  /** True when the object says something else: a write is due. */
  readonly isDue: boolean;
  /** To be journaled, then withdrawn from use, before the write. */
  readonly toOffer: readonly Offer[];
  /** Of them, some were paced: the pacing starts anew. */
  readonly isPaced: boolean;
  /** Taken by ipamd: their record may go now, whatever becomes of the write. */
  readonly toForget: readonly Offer[];
  /**
   * Taken out by this write: back into use, and their record erased, once it succeeded **and changed the object**, so
   * that no older write of ours can still put the offer back.
   */
  readonly toRestore: readonly Offer[];
  /** When surplus may go on being given back; absent when there is none. Since boot. */
  readonly nextReleaseMs?: number;
};
