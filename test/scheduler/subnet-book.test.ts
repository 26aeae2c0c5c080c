import test from 'ava';
import { readNec } from '../../scheduler/index/facts.ts';
import { SubnetBook } from '../../scheduler/index/subnet-book.ts';
import { necOf } from './scheduler-scene.ts';

const SUBNET = { subnetID: 'subnet-a', cidr: '10.2.0.0/24' };
const WHOLE = { subnetID: 'subnet-a', cidr: '', mode: 'direct-eni' } as const;
const TOLD = [
  necOf({
    name: 'n1',
    zone: 'z',
    enis: [
      { eniID: 'eni-1', ...SUBNET },
      { eniID: 'eni-2', ...WHOLE },
    ],
  }),
  necOf({ name: 'n2', zone: 'z', enis: [{ eniID: 'eni-3', ...WHOLE }] }),
].map((nec) => readNec(nec));

for (const [order, told] of [
  ['first', TOLD],
  ['last', TOLD.toReversed()],
] as const) {
  test(`SubnetBook: knows the network that one ENI says, when who says it comes ${order}`, (t) => {
    const book = new SubnetBook();
    for (const nec of told) book.change(undefined, nec);
    t.like(book.find('10.2.0.9'), { subnetId: 'subnet-a', zone: 'z', cidr: SUBNET.cidr });
  });
}
