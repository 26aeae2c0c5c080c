import test, { type ExecutionContext } from 'ava';
import { openJournal } from '../../agent/journal/journal.ts';
import { readJournal } from '../../agent/journal/read-journal.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { asJson } from './find-differences.ts';
import { readEach } from './frozen.ts';
import { asJournal, bodiesOf, clockOf, dumpJournal, type JournalDump, makeJournal, metaOf } from './record/journal.ts';

function fileOf(t: ExecutionContext, dump: JournalDump): string {
  const dir = createTempDir('frozen');
  t.teardown(() => dir.close());
  makeJournal(dir.join('journal.db'), dump);
  return dir.join('journal.db');
}

/** In the order of their texts, keys sorted in these. */
function byText(values: readonly unknown[] = []): readonly unknown[] {
  return values.map(asJson).toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

/** What a journal says, in the order of its own text. */
function assertSame(t: ExecutionContext, dump: JournalDump, content: ReturnType<typeof readJournal>): void {
  const meta = metaOf(dump);
  t.deepEqual(byText(content.leases), byText(bodiesOf(dump, 'lease')));
  t.deepEqual(byText(content.cooldowns), byText(bodiesOf(dump, 'cooldown')));
  t.deepEqual(byText(content.enis), byText(bodiesOf(dump, 'eni')));
  t.deepEqual(byText(content.offers), byText(bodiesOf(dump, 'offer')));
  t.deepEqual<unknown, unknown>(content.supply, meta.get('supply'));
  t.is<unknown, unknown>(content.ruleMode, meta.get('ruleMode'));
  t.is<unknown, unknown>(content.life, meta.get('life'));
  t.is<unknown, unknown>(content.bootId, meta.get('bootId'));
  t.is(content.needsAdoption, meta.has('adoption'));
}

for (const name of ['journal/full', 'journal/version-1', 'journal/agent']) {
  for (const { release, content } of readEach(name)) {
    const dump = asJournal(content);
    const bootId = String(metaOf(dump).get('bootId'));

    test(`${name}.json of ${release}: the agent opens it and has every lease, cooldown, offer, ENI and the supply`, (t) => {
      const path = fileOf(t, dump);
      using journal = openJournal(path, { clock: clockOf(dump), bootId });
      t.is(journal.origin, 'existing');
      assertSame(t, dump, { ...journal.load(), bootId, needsAdoption: journal.needsAdoption });
      journal.close();
      t.deepEqual(dumpJournal(path).tables, asJournal(readEach('journal/full').at(-1)?.content ?? {}).tables);
    });

    test(`${name}.json of ${release}: tke-eni reads the same out of it`, (t) => {
      assertSame(t, dump, readJournal(fileOf(t, dump)));
    });
  }
}
