import test from 'ava';
import { findStrayIps } from '../../../ipamd/decide/find-stray-ips.ts';

const SUBNET = { subnetId: 'subnet-a', cidr: '10.0.1.0/24', freeIps: 9, isBlocked: false };
const ENI = { eniID: 'eni-1', mac: '20:90:6f:00:00:01', state: 'Attached', subnetCIDR: '10.0.9.0/24' } as const;
const STATUS = {
  eniInfos: [{ ...ENI, addresses: [{ ip: '10.0.9.5', assignmentID: 'a', state: 'Assigned' as const }] }],
};

const strays = test.macro((t, inUse: readonly string[], expected: readonly string[], movedTo?: string) => {
  const moved = movedTo === undefined ? {} : { movedTo: new Map([[movedTo, 'eni-2']]) };
  t.deepEqual(findStrayIps(STATUS, { inUse: new Set(inUse), subnets: [SUBNET], ...moved }), expected);
});

test('findStrayIps: an address that the status has', strays, ['10.0.9.5'], []);
test('findStrayIps: one of an ENI’s subnet that it has not', strays, ['10.0.9.5', '10.0.9.6'], ['10.0.9.6']);
test('findStrayIps: one of a subnet of the cluster', strays, ['10.0.1.6'], ['10.0.1.6']);
test('findStrayIps: one of another network', strays, ['192.168.1.6', 'fd00::6'], []);
test('findStrayIps: one that another node has by now', strays, ['10.0.9.6'], [], '10.0.9.6');
