/**
 * Records the public surface again, for a new release: `node test/frozen/record.ts --out FOLDER [--bin FOLDER]`. Tables come
 * from the sources, what executables write from those in the folder `--bin` (default dist/bin), for which it must be root.
 */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { BUILT_VARIABLE } from '../../tools/build.ts';
import { useExecutablesOf } from '../support/executables.ts';
import { readFrozen, writeRecord } from './frozen.ts';
import { CONTENTS, TABLES } from './parts.ts';
import { recordLife, recordRequests } from './record/cloud.ts';
import { asJournal, rewriteJournal, withoutOffers } from './record/journal.ts';
import { recordLbDocuments } from './record/lb.ts';
import { recordLogs } from './record/logs.ts';
import { recordExecutables } from './stage/record-stage.ts';

const { values } = parseArgs({ options: { bin: { type: 'string' }, out: { type: 'string' } } });
const { out, bin } = values;
if (out === undefined) throw new Error('usage: node test/frozen/record.ts --out FOLDER [--bin FOLDER]');
for (const [name, record] of Object.entries(TABLES)) writeRecord(out, name, record());
for (const [name, rewrite] of Object.entries(CONTENTS)) writeRecord(out, name, rewrite(readFrozen(name)));
writeRecord(out, 'logs', recordLogs(Object.keys(Object(readFrozen('logs')['messages']))));
writeRecord(out, 'journal/version-1', withoutOffers(rewriteJournal(asJournal(readFrozen('journal/full')))));
writeRecord(out, 'cloud/requests', await recordRequests());
writeRecord(out, 'cloud/life', await recordLife());
writeRecord(out, 'json/lb', await recordLbDocuments());
if (bin !== undefined) {
  // They are there; nothing is built.
  process.env[BUILT_VARIABLE] = '1';
  useExecutablesOf(resolve(bin));
}
await recordExecutables((name, value) => writeRecord(out, name, value));
