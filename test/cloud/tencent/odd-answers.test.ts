import test from 'ava';
import { decodeEniPage } from '../../../cloud/tencent/decode/eni.ts';
import { decodeInstances } from '../../../cloud/tencent/decode/instance.ts';
import { decodeSubnetPage } from '../../../cloud/tencent/decode/others.ts';

const ENI = {
  NetworkInterfaceId: 'eni-1',
  SubnetId: 'subnet-1',
  VpcId: 'vpc-1',
  State: 'AVAILABLE',
  PrivateIpAddressSet: [{ PrivateIpAddress: '10.0.0.2', Primary: true, State: 'AVAILABLE' }],
};

test('decodeEniPage: takes what the API leaves out as null', (t) => {
  const odd = { ...ENI, TagSet: null, GroupSet: null, Attachment: null, PrivateIpAddressSet: null, MacAddress: null };
  const { objects } = decodeEniPage({ NetworkInterfaceSet: [odd], TotalCount: 1 });
  t.like(objects[0], { eniId: 'eni-1', tags: {}, securityGroupIds: [], ips: [], attachment: undefined, mac: '' });
});

test('decodeEniPage: an ENI or address in a state that nobody knows is on its way, and hides no other', (t) => {
  const strange = {
    ...ENI,
    NetworkInterfaceId: 'eni-2',
    State: 'HIBERNATING',
    PrivateIpAddressSet: [{ PrivateIpAddress: '10.0.0.3', State: 'FROZEN' }],
  };
  const bare = { ...ENI, NetworkInterfaceId: 'eni-3', State: null };
  const { objects } = decodeEniPage({ NetworkInterfaceSet: [ENI, strange, bare], TotalCount: 3 });
  t.deepEqual(
    objects.map((eni) => [eni.eniId, eni.state, eni.ips[0]?.state]),
    [
      ['eni-1', 'AVAILABLE', 'AVAILABLE'],
      ['eni-2', 'PENDING', 'PENDING'],
      ['eni-3', 'PENDING', 'AVAILABLE'],
    ],
  );
});

test('decode: an empty list may come as null, but only where the count says that it is empty', (t) => {
  t.deepEqual(decodeEniPage({ NetworkInterfaceSet: null, TotalCount: 0 }).objects, []);
  t.deepEqual(decodeInstances({ InstanceSet: null, TotalCount: 0 }), []);
  t.deepEqual(decodeSubnetPage({ SubnetSet: null, TotalCount: 0 }).objects, []);
  t.throws(() => decodeEniPage({ NetworkInterfaceSet: null, TotalCount: 4 }), { message: /BAD_ANSWER/ });
  t.throws(() => decodeInstances({ InstanceSet: null, TotalCount: 4 }), { message: /BAD_ANSWER/ });
  t.throws(() => decodeSubnetPage({ SubnetSet: null, TotalCount: 4 }), { message: /BAD_ANSWER/ });
});
