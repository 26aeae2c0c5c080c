import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { VpcEniEntry } from './vpc-eni-entry.ts';

/** Where the object of a node has an ENI. */
export type EniPlace = {
  readonly nodeName: string;
  readonly instanceId: string;
  readonly zone: string;
  readonly eni: NodeEniInfo;
};

/** What the cloud says of an ENI. `unasked`: it was not looked at. */
export type CloudWord = 'unasked' | 'absent' | 'free' | 'bound' | 'moving';

/** What a decision about one VpcENI depends on. */
export type VpcEniFacts = {
  /** The object that has the ENI; undefined: none. */
  readonly held: VpcEniEntry | undefined;
  /** Nodes whose object has the ENI; two while one hands it to the other. */
  readonly places: readonly EniPlace[];
  /** Whether the claim that it is kept for is there and goes on; `unknown`: nobody asked. */
  readonly claim: 'kept' | 'ended' | 'unknown';
  readonly cloud: CloudWord;
};

/** How an ENI stands, as its VpcENI is to say it. */
export type VpcEniPhase = 'Available' | 'Attaching' | 'Attached' | 'Detaching' | 'Deleting';

/** What is to be done about one VpcENI. */
export type VpcEniStep =
  | { readonly kind: 'none' }
  /** Made or brought up to date, in one guarded write. */
  | { readonly kind: 'write'; readonly phase: VpcEniPhase; readonly place: EniPlace | undefined }
  /** It is nowhere known where the ENI is: the cloud is asked, then decided again. */
  | { readonly kind: 'look' }
  /** Whether its claim still goes on is asked, then decided again. */
  | { readonly kind: 'ask-claim' }
  /** The ENI is deleted in the cloud; that it is to go is on record in the phase. */
  | { readonly kind: 'delete-eni' }
  /** The ENI is no more: finalizer and object go. */
  | { readonly kind: 'let-go' }
  /** It is where no node of ours has it, or on its way; looked at again later. */
  | { readonly kind: 'wait'; readonly why: string };

/**
 * Decides about the VpcENI of one exclusive ENI. Pure.
 *
 * While a node's object has the ENI the VpcENI only says so. An ENI that is kept and was taken off its instance is
 * Available: from then on it lives here alone, and the node drops it. No node's call is recorded here: to attach it is
 * the next node's intent, in its own object; to delete it needs none, for it is named by id and a second deletion finds
 * nothing, so that the phase Deleting is record enough. A crash at any point leaves an object that names the ENI.
 */
export function decideVpcEni(facts: VpcEniFacts): VpcEniStep {
  const { held, places } = facts;
  const place = places.find(({ eni }) => !isOff(eni)) ?? places[0];
  if (place !== undefined) return { kind: 'write', phase: phaseOf(place.eni, held), place };
  if (held === undefined) return { kind: 'none' };
  if (held.claim === '') return { kind: 'let-go' };
  switch (held.phase) {
    case 'Available':
      return onItsOwn(facts, held);
    case 'Deleting':
      return deleting(facts);
    default:
      return lost(facts);
  }
}

/** Taken off its instance, and not attached anew so far. */
function isOff(eni: NodeEniInfo): boolean {
  return eni.state === 'Detaching' && eni.deviceIndex === undefined;
}

function phaseOf(eni: NodeEniInfo, held: VpcEniEntry | undefined): VpcEniPhase {
  if (!isOff(eni)) return eni.state;
  const isKept = eni.claim !== undefined || (held !== undefined && held.claim !== '');
  return isKept ? 'Available' : 'Deleting';
}

function onItsOwn({ claim }: VpcEniFacts, held: VpcEniEntry): VpcEniStep {
  if (held.isLeaving || claim === 'ended') return { kind: 'write', phase: 'Deleting', place: undefined };
  return claim === 'unknown' ? { kind: 'ask-claim' } : { kind: 'none' };
}

function deleting({ cloud }: VpcEniFacts): VpcEniStep {
  switch (cloud) {
    case 'unasked':
      return { kind: 'look' };
    case 'absent':
      return { kind: 'let-go' };
    case 'free':
      return { kind: 'delete-eni' };
    case 'bound':
      return { kind: 'wait', why: 'it is on an instance, and cannot be deleted' };
    case 'moving':
      return { kind: 'wait', why: 'it is between two states' };
  }
}

/** No node has it, and nobody took it off: its node's object was lost, or mended without it. */
function lost({ cloud }: VpcEniFacts): VpcEniStep {
  switch (cloud) {
    case 'unasked':
      return { kind: 'look' };
    case 'absent':
      return { kind: 'let-go' };
    case 'free':
      return { kind: 'write', phase: 'Available', place: undefined };
    case 'bound':
      return { kind: 'wait', why: 'it is on an instance, and no NodeENIConfig has it' };
    case 'moving':
      return { kind: 'wait', why: 'it is between two states' };
  }
}
