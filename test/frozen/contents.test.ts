import { readdirSync, writeFileSync } from 'node:fs';
import test from 'ava';
import { drainSpool } from '../../agent/attachment/spool.ts';
import { silentLogger } from '../../runtime/log.ts';
import { isObject } from '../../sim/support/netns.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { findDifferences } from './find-differences.ts';
import { readEach, readFrozen } from './frozen.ts';
import { CONTENTS } from './parts.ts';
import { asFile, rewriteFoundFile, rewriteInstallRecord, rewriteNodeFile } from './record/files.ts';
import { asJournal, rewriteJournal } from './record/journal.ts';
import { fieldsOfSchema, fieldsOfValue, OBJECTS } from './record/objects.ts';

/** What executables left on a node. */
const LEFT: typeof CONTENTS = {
  'journal/agent': (recorded) => rewriteJournal(asJournal(recorded)),
  'files/left/node': (recorded) => rewriteNodeFile(asFile(recorded)),
  'files/left/found': (recorded) => rewriteFoundFile(asFile(recorded)),
  'files/left/installed': (recorded) => rewriteInstallRecord(asFile(recorded)),
};

for (const [name, rewrite] of Object.entries({ ...CONTENTS, ...LEFT })) {
  for (const { release, content } of readEach(name)) {
    test(`${name}.json of ${release}: is read, and written again as it was`, (t) => {
      t.deepEqual(findDifferences(content, rewrite(content)), []);
    });
  }
}

test('objects: have every field that the definitions have', (t) => {
  const definitions = Object.values(readFrozen('manifests/definitions'));
  const objects = OBJECTS.map((name) => readFrozen(`objects/${name}`));
  for (const definition of definitions) {
    const { names, versions } = Object(Object(definition).spec);
    const wanted = fieldsOfSchema(versions[0].schema.openAPIV3Schema);
    const ofKind = objects.filter(({ kind }) => kind === names.kind);
    const there = new Set(ofKind.flatMap((object) => fieldsOfValue(object)));
    t.deepEqual(
      wanted.filter((path) => !there.has(path)),
      [],
      String(names.kind),
    );
  }
});

test('objects: have an intent of every mutation in every phase', (t) => {
  const { versions } = Object(
    Object(readFrozen('manifests/definitions')['nodeeniconfigs.networking.tke.cloud.tencent.com']).spec,
  );
  const { action, phase } = versions[0].schema.openAPIV3Schema.properties.status.properties.intents.items.properties;
  const intents = OBJECTS.map((name) => readFrozen(`objects/${name}`))
    .filter(({ kind }) => kind === 'NodeENIConfig')
    .flatMap(({ status }) =>
      isObject(status) && Array.isArray(status['intents']) ? status['intents'].filter(isObject) : [],
    );
  const there = new Set(intents.map((intent) => `${intent['action']} ${intent['phase']}`));
  const wanted = action.enum.flatMap((one: string) => phase.enum.map((other: string) => `${one} ${other}`));
  t.is(wanted.length, 42);
  t.deepEqual([...there].sort(), wanted.sort());
});

/** What of a spooled DEL decides what the agent does. */
const WANTED_OF_DEL = ['containerId', 'ifName', 'netns', 'writtenAtBootMs'];

for (const { release, content } of readEach('files/spooled')) {
  test(`files/spooled.json of ${release}: the agent does the DEL that an executable left, and takes the file away`, async (t) => {
    const dir = createTempDir('frozen');
    t.teardown(() => dir.close());
    const { name, content: recorded } = asFile(content);
    writeFileSync(dir.join(name), JSON.stringify(recorded));
    const done: object[] = [];
    const release = async (del: object): Promise<void> => void done.push(del);
    await drainSpool({ directory: dir.path, release, pending: () => undefined, log: silentLogger });
    const values = Object.values(done[0] ?? {});
    const missing = WANTED_OF_DEL.filter((key) => recorded[key] === undefined || !values.includes(recorded[key]));
    t.deepEqual(missing, [], 'all that the agent goes by');
    t.deepEqual(readdirSync(dir.path), []);
  });
}
