import { DatabaseSync } from 'node:sqlite';
import test, { type ExecutionContext } from 'ava';
import type { Supply } from '../../../agent/journal/supply.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { sampleAddress, sampleEni, sampleSupply } from '../pool/supply-sample.ts';
import { open } from './journal-fixture.ts';

function tempJournal(t: ExecutionContext): string {
  const folder = createTempDir('journal-kept');
  t.teardown(() => folder.close());
  return folder.join('journal.db');
}

const MINE = { namespace: 'ns', name: 'web-0', uid: 'u1' };
const NOBODYS = { namespace: 'ns', name: 'web-1' };
const addresses = [
  sampleAddress('10.0.0.5', { claim: MINE }),
  sampleAddress('10.0.0.6', { claim: NOBODYS }),
  sampleAddress('10.0.0.7'),
];
const SUPPLY: Supply = {
  ...sampleSupply([sampleEni('eni-a', [], { addresses })], 9),
  isStaticIpEnabled: true,
  takenOver: [{ ip: '10.0.0.8', leaseKey: 'old/eth0' }],
  warm: { min: 5, max: 5, limit: 27, keptPlaces: 2 },
};

test('journal: reads a supply of an agent that knew no kept addresses', (t) => {
  const path = tempJournal(t);
  const old = sampleSupply([sampleEni('eni-a', ['10.0.0.5'])], 9);
  {
    using journal = open(path);
    journal.putSupply(SUPPLY);
  }
  {
    using database = new DatabaseSync(path);
    database.prepare("UPDATE meta SET body = ? WHERE name = 'supply'").run(JSON.stringify(old));
  }
  using journal = open(path);
  t.is(journal.origin, 'existing');
  t.deepEqual(journal.load().supply, old);
});

test('journal: a mark that is not what we write is damage, and no address of the pool', (t) => {
  const path = tempJournal(t);
  {
    using journal = open(path);
    journal.putSupply(SUPPLY);
  }
  {
    using database = new DatabaseSync(path);
    const body = JSON.stringify(SUPPLY).replace('"name":"web-0"', '"name":7');
    database.prepare("UPDATE meta SET body = ? WHERE name = 'supply'").run(body);
  }
  using journal = open(path);
  t.is(journal.origin, 'replaced-damaged');
  t.is(journal.load().supply, undefined);
});
