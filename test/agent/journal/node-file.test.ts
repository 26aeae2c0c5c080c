import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { readNodeRecord, writeNodeRecord } from '../../../agent/journal/node-file.ts';
import { NODE_RECORD_FILE, type NodeRecord } from '../../../agent/journal/node-record.ts';
import { createNodeRecordWriter } from '../../../agent/node/node-record-writer.ts';
import { podCidrOf } from '../../../dataplane/pod-cidr.ts';
import { ConfigError } from '../../../runtime/decode.ts';
import { type Logger, silentLogger } from '../../../runtime/log.ts';
import { FileError } from '../../../runtime/read-regular-file.ts';
import { createTempDir, type TempDir } from '../../support/temp-dir.ts';

const RECORD: NodeRecord = {
  bootId: 'boot-1',
  agentRelease: '0.1.0',
  nodeName: 'node1',
  node: {
    ruleMode: 'compact',
    eniMarkMask: 0x00ff0000,
    rpFilterMode: 'loose',
    egress: 'eni',
    primary: { ifindex: 2, ifname: 'eth0', addresses: ['10.0.0.2/24'] },
    podCidrs: [],
    families: [4, 6],
    nodePort: true,
    vpcCidrs: ['10.0.0.0/16'],
    nftables: false,
    fastPath: 'bpf',
  },
  enis: [
    {
      ...{ eniId: 'eni-a', mac: '02:00:00:00:00:01', ifindex: 7, ifname: 'eth1', mtu: 1500, table: 4007, slot: 1 },
      addresses: [{ ip: '10.0.1.5', gateway: '10.0.1.1' }],
    },
  ],
};

function folder(t: ExecutionContext): TempDir {
  const dir = createTempDir('node-file');
  t.teardown(() => dir.close());
  return dir;
}

test('readNodeRecord: reads what writeNodeRecord wrote, which only root may read', (t) => {
  const dir = folder(t);
  writeNodeRecord(dir.path, RECORD);
  t.deepEqual(readNodeRecord(dir.join(NODE_RECORD_FILE)), RECORD);
  t.is(statSync(dir.join(NODE_RECORD_FILE)).mode & 0o777, 0o600);
});

test('readNodeRecord: tells former blocks from the present one', (t) => {
  const dir = folder(t);
  const podCidrs = [podCidrOf('172.20.0.0/26'), podCidrOf('172.20.1.0/26', false)];
  const record = { ...RECORD, node: { ...RECORD.node, podCidrs } };
  writeNodeRecord(dir.path, record);
  t.deepEqual(readNodeRecord(dir.join(NODE_RECORD_FILE)), record);
});

test('readNodeRecord: passes over fields of a newer agent', (t) => {
  const dir = folder(t);
  writeFileSync(dir.join('n.json'), JSON.stringify({ ...RECORD, later: 1, node: { ...RECORD.node, later: true } }));
  t.deepEqual(readNodeRecord(dir.join('n.json')), RECORD);
});

test('readNodeRecord: throws ConfigError naming every fault', (t) => {
  const dir = folder(t);
  writeFileSync(
    dir.join('n.json'),
    JSON.stringify({ ...RECORD, bootId: 7, node: { ...RECORD.node, families: [4, 5] }, enis: [{}] }),
  );
  const error = t.throws(() => readNodeRecord(dir.join('n.json')), { instanceOf: ConfigError });
  const paths = error instanceof ConfigError ? error.faults.map(({ path }) => path) : [];
  t.true(['bootId', 'node.families[1]', 'enis[0].eniId', 'enis[0].slot'].every((path) => paths.includes(path)));
  writeFileSync(dir.join('n.json'), '{"bootId": ');
  t.throws(() => readNodeRecord(dir.join('n.json')), { instanceOf: ConfigError, message: /expected JSON/ });
  t.throws(() => readNodeRecord(dir.join('none.json')), { code: 'ENOENT' });
});

test('createNodeRecordWriter: writes when the plan changed or the file is gone, and not otherwise', (t) => {
  const dir = folder(t);
  const path = dir.join(NODE_RECORD_FILE);
  const { bootId, agentRelease, nodeName, node, enis } = RECORD;
  const keep = createNodeRecordWriter({ stateDir: dir.path, log: silentLogger, bootId, agentRelease, nodeName });
  keep(node, enis);
  t.deepEqual(readNodeRecord(path), RECORD);
  utimesSync(path, 1, 1);
  keep({ ...node }, [...enis]);
  t.is(statSync(path).mtimeMs, 1000, 'the same plan is not written again');
  keep({ ...node, ruleMode: 'per-pod' }, enis);
  t.is(readNodeRecord(path).node.ruleMode, 'per-pod');
  rmSync(path);
  keep({ ...node, ruleMode: 'per-pod' }, enis);
  t.is(readNodeRecord(path).node.ruleMode, 'per-pod');
});

test('createNodeRecordWriter: never throws, tells of a failure once and goes on when it can', (t) => {
  const dir = folder(t);
  const warnings: string[] = [];
  const log: Logger = { ...silentLogger, warn: (message) => warnings.push(message) };
  const stateDir = dir.join('later');
  const { bootId, agentRelease, nodeName, node, enis } = RECORD;
  const keep = createNodeRecordWriter({ stateDir, log, bootId, agentRelease, nodeName });
  keep(node, enis);
  keep(node, enis);
  t.is(warnings.length, 1);
  mkdirSync(stateDir);
  keep(node, enis);
  t.true(readFileSync(dir.join('later', NODE_RECORD_FILE), 'utf8').endsWith('}\n'));
});

test('readNodeRecord: refuses a FIFO, a device and more than 16 MiB at once; writeNodeRecord replaces them', (t) => {
  const dir = folder(t);
  const path = dir.join(NODE_RECORD_FILE);
  const refused = (make: () => void, code: string) => {
    rmSync(path, { force: true });
    make();
    t.throws(() => readNodeRecord(path), { instanceOf: FileError, code });
    writeNodeRecord(dir.path, RECORD);
    t.deepEqual(readNodeRecord(path), RECORD);
  };
  refused(() => execFileSync('mkfifo', [path]), 'NOT_A_FILE');
  refused(() => symlinkSync('/dev/zero', path), 'NOT_A_FILE');
  refused(() => {
    writeFileSync(path, '');
    truncateSync(path, 16 * 1024 * 1024 + 1);
  }, 'FILE_TOO_LARGE');
});
