import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { VpcEniEntry } from '../cache/vpc-eni-entry.ts';

/** An entry of an ENI in the object of a node. */
export type NodeEniEntry = {
  readonly nodeName: string;
  readonly instanceId: string;
  readonly zone: string;
  readonly eni: NodeEniInfo;
  /** The Pod that uses it now; absent: none. */
  readonly pod?: { readonly namespace: string; readonly name: string };
};

/** State of an ENI in the cloud. `unasked`: it was not described. `foreign`: its tags do not show that ipamd created it. */
type CloudEniState = 'unasked' | 'absent' | 'foreign' | 'free' | 'bound' | 'moving';

/** What a decision about one VpcENI depends on. */
export type VpcEniFacts = {
  /** The present VpcENI; undefined: none. */
  readonly vpcEni: VpcEniEntry | undefined;
  /** Nodes whose object contains the ENI; two while one hands it over to the other. */
  readonly entries: readonly NodeEniEntry[];
  /** Whether the claim of the ENI exists and does not end; `unknown`: it was not read. */
  readonly claim: 'kept' | 'ended' | 'unknown';
  readonly cloud: CloudEniState;
};

/** State of an ENI in its VpcENI. */
export type VpcEniPhase = 'Available' | 'Attaching' | 'Attached' | 'Detaching' | 'Deleting';

/** What is to be done about one VpcENI. */
export type VpcEniStep =
  | { readonly kind: 'none' }
  /** Created or updated in one guarded write. */
  | { readonly kind: 'write'; readonly phase: VpcEniPhase; readonly entry: NodeEniEntry | undefined }
  /** The location of the ENI is unknown: describe it in the cloud, then decide again. */
  | { readonly kind: 'look' }
  /** Read whether its claim still exists, then decide again. */
  | { readonly kind: 'ask-claim' }
  /** Delete the ENI in the cloud; the phase records the deletion. */
  | { readonly kind: 'delete-eni' }
  /** The ENI does not exist any more: finalizer and object are deleted. */
  | { readonly kind: 'let-go' }
  /** The ENI is where no node's object has it, or between two states; checked again later. */
  | { readonly kind: 'wait'; readonly why: string };

/**
 * Decides about the VpcENI of one exclusive ENI.
 *
 * While a node's object contains the ENI, the VpcENI only reflects it. A static ENI that was detached is Available:
 * from then on only the VpcENI has it, and the node removes its entry. No node's call is recorded here. The attachment
 * is an intent of the next node, in that node's object. The deletion needs no intent: the ENI is named by id and a
 * second deletion finds nothing, so the phase Deleting is a sufficient record. After a crash at any point some object
 * names the ENI.
 */
export function decideVpcEni(facts: VpcEniFacts): VpcEniStep {
  const { vpcEni, entries } = facts;
  const entry = entries.find(({ eni }) => !isDetached(eni)) ?? entries[0];
  if (entry !== undefined) return { kind: 'write', phase: phaseOf(entry.eni, vpcEni), entry };
  if (vpcEni === undefined) return { kind: 'none' };
  if (vpcEni.claim === '') return { kind: 'let-go' };
  switch (vpcEni.phase) {
    case 'Available':
      return decideDetached(facts, vpcEni);
    case 'Deleting':
      return deleting(facts);
    default:
      return lost(facts);
  }
}

/** Reports whether the ENI was detached and not attached again yet. */
function isDetached(eni: NodeEniInfo): boolean {
  return eni.state === 'Detaching' && eni.deviceIndex === undefined;
}

function phaseOf(eni: NodeEniInfo, vpcEni: VpcEniEntry | undefined): VpcEniPhase {
  if (!isDetached(eni)) return eni.state;
  const isStatic = eni.claim !== undefined || (vpcEni !== undefined && vpcEni.claim !== '');
  return isStatic ? 'Available' : 'Deleting';
}

function decideDetached({ claim }: VpcEniFacts, vpcEni: VpcEniEntry): VpcEniStep {
  if (vpcEni.isLeaving || claim === 'ended') return { kind: 'write', phase: 'Deleting', entry: undefined };
  return claim === 'unknown' ? { kind: 'ask-claim' } : { kind: 'none' };
}

const NOT_OURS =
  'its tags do not show that ipamd created it for this cluster, so it is neither deleted nor attached; give it its tags back, or delete it by hand';

function deleting({ cloud }: VpcEniFacts): VpcEniStep {
  switch (cloud) {
    case 'unasked':
      return { kind: 'look' };
    case 'absent':
      return { kind: 'let-go' };
    case 'free':
      return { kind: 'delete-eni' };
    case 'foreign':
      return { kind: 'wait', why: NOT_OURS };
    case 'bound':
      return { kind: 'wait', why: 'it is on an instance, and cannot be deleted' };
    case 'moving':
      return { kind: 'wait', why: 'it is between two states' };
  }
}

/**
 * Decides for an ENI that no node's object contains and that was not detached: the object was lost, or rebuilt without
 * it.
 */
function lost({ cloud }: VpcEniFacts): VpcEniStep {
  switch (cloud) {
    case 'unasked':
      return { kind: 'look' };
    case 'absent':
      return { kind: 'let-go' };
    case 'free':
      return { kind: 'write', phase: 'Available', entry: undefined };
    case 'foreign':
      return { kind: 'wait', why: NOT_OURS };
    case 'bound':
      return { kind: 'wait', why: 'it is on an instance, and no NodeENIConfig has it' };
    case 'moving':
      return { kind: 'wait', why: 'it is between two states' };
  }
}
