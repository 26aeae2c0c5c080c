import { podRecordsOf } from '../../config/ipamd-config.ts';
import type { Guest } from '../../term/guest.ts';
import { runRecords } from './run-records.ts';

/** Records of Pods, for people: VpcIPs and VpcIPClaims that nothing else reads. */
export const RECORDS: Guest = {
  name: 'records',
  isWanted: (config) => podRecordsOf(config) !== 'none',
  open: (term) => {
    const records = { ...term, hasClaims: podRecordsOf(term.config) === 'all' };
    return { controllers: [(signal) => runRecords(records, signal)] };
  },
};
