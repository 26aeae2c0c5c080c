import test from 'ava';
import { findDifferences } from './find-differences.ts';
import { readFrozen } from './frozen.ts';
import { recordLife, recordRequests } from './record/cloud.ts';

test.serial(
  'cloud/requests.json: each recorded intent is sent to the cloud with the same names, tags and ClientToken',
  async (t) => {
    t.deepEqual(findDifferences(readFrozen('cloud/requests'), await recordRequests()), []);
  },
);

test.serial(
  'cloud/life.json: a node that grows, changes its groups and goes makes requests of the same forms, and logs them',
  async (t) => {
    t.deepEqual(findDifferences(readFrozen('cloud/life'), await recordLife()), []);
  },
);
