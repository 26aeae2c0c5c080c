import { recordOf, recordsOf, textOf, textsOf } from '../../../runtime/json.ts';
import type { OpenAuditor, SentCall } from './auditor.ts';

/** Calls that have a record, and the action that the record has. Others may be sent twice, and name what they are about. */
const RECORDED =
  /^(?:(?:Create|Attach|Detach|Delete)NetworkInterface|(?:Unassign|Assign)PrivateIpAddresses|MigratePrivateIpAddress|AllocateAddresses|(?:Dis)?[Aa]ssociateAddress|ReleaseAddresses|.*NetworkInterfaceSecurityGroups|ModifyNetworkInterfaceAttribute)$/;

/**
 * A6: a call that changes something is in an object, in a revision older than its sending. An ENI that is in no object is an
 * orphan: what is done to it has no record. A call that was on record before a restore may be tried again with its token.
 */
export const openCallsOnRecord: OpenAuditor = (world) => {
  /** Tokens that were on record, each with the life that wrote it. */
  const recorded = new Set<string>();
  let isRestored = false;
  return {
    name: 'A6',
    change: (plural, { object }) => {
      if (plural !== 'nodeeniconfigs' && plural !== 'eipclaims') return;
      for (const { clientToken } of recordsOf(recordOf(object['status'])['intents']))
        if (clientToken !== undefined) recorded.add(`${world.writer} ${textOf(clientToken)}`);
    },
    restored: () => {
      isRestored = true;
    },
    sent: (call) => {
      if (!RECORDED.test(call.action)) return;
      const objects = [...world.objects('nodeeniconfigs'), ...world.objects('eipclaims')];
      const records = objects.flatMap((object) => recordsOf(recordOf(object['status'])['intents']));
      const sending = `${call.life} ${textOf(call.request['ClientToken'])}`;
      if (records.some((record) => isRecordOf(record, call))) {
        if (call.request['ClientToken'] !== undefined) recorded.add(sending);
        return;
      }
      if (isRestored && recorded.has(sending)) return;
      const eniId = eniOf(call);
      const isKnown = objects.some((object) =>
        recordsOf(recordOf(object['status'])['eniInfos']).some(({ eniID }) => eniID === eniId),
      );
      if ((eniId !== '' && !isKnown) || call.action === 'ReleaseAddresses') return;
      world.violate('A6', `${call.life} sends ${call.action} of ${eniId}, which is not on record`);
    },
  };
};

function isRecordOf(record: Readonly<Record<string, unknown>>, call: SentCall): boolean {
  // Groups are taken away by a call of another name than the one that sets them.
  const action = call.action.endsWith('NetworkInterfaceSecurityGroups')
    ? 'ModifyNetworkInterfaceAttribute'
    : call.action;
  if (record['action'] !== action) return false;
  const { request } = call;
  const eniId = eniOf(call);
  if (eniId !== '' && record['eniID'] !== eniId) return false;
  if (request['ClientToken'] !== undefined && record['clientToken'] !== request['ClientToken']) return false;
  const eip = textOf(request['AddressId']) || (textsOf(request['AddressIds'])[0] ?? '');
  return eip === '' || record['eipID'] === eip;
}

function eniOf({ request }: SentCall): string {
  const one = textOf(request['NetworkInterfaceId']) || textOf(request['SourceNetworkInterfaceId']);
  return one || (textsOf(request['NetworkInterfaceIds'])[0] ?? '');
}
