import { CLUSTER_TAG, ENI_TAG } from '../../crd/cloud-tags.ts';
import { MUTATIONS } from '../../crd/intent.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { Begin, Ids, Intent, Leader, PlannedCall } from './decision.ts';
import type { NodeView } from './node-view.ts';

/** Begins a planned call: returns its intent with a new id, and the status that records the intent. Takes ids. */
export function beginCall(
  { action, fields, priority, change }: PlannedCall,
  status: NodeEniConfigStatus,
  view: Pick<NodeView, 'nodeName' | 'uid'>,
  leader: Leader,
  ids: Ids,
): Begin {
  const id = ids.next();
  const intent: Intent = {
    ...fields,
    id,
    action,
    phase: 'Recorded',
    leaderEpoch: leader.epoch,
    ...(MUTATIONS[action].takesClientToken ? { clientToken: id } : {}),
    ...(action === 'CreateNetworkInterface' ? creationFieldsOf(view, leader, id, fields.tags) : {}),
    requestTimeoutSeconds: leader.requestTimeoutSeconds,
    recordedAt: ids.now(),
  };
  const before = change?.(status) ?? status;
  return { kind: 'begin', status: { ...before, intents: [...(before.intents ?? []), intent] }, intent, priority };
}

const MAX_NAME_LENGTH = 60;
/**
 * Longest value of a tag, characters.
 * @see https://cloud.tencent.com/document/product/651/13354 (limits of tags)
 */
const MAX_TAG_LENGTH = 127;

/** Returns name and tags of a new ENI. They identify the ENI when the answer with its id was lost. */
function creationFieldsOf(
  { nodeName, uid }: Pick<NodeView, 'nodeName' | 'uid'>,
  leader: Leader,
  id: string,
  more: Intent['tags'],
): Pick<Intent, 'resourceName' | 'tags'> {
  return {
    resourceName: `tke-${leader.clusterId}`.slice(0, MAX_NAME_LENGTH - id.length - 1).concat('-', id),
    tags: {
      [CLUSTER_TAG]: leader.clusterId,
      [ENI_TAG.created]: 'true',
      [ENI_TAG.node]: nodeName.slice(0, MAX_TAG_LENGTH),
      [ENI_TAG.uid]: uid,
      ...more,
    },
  };
}
