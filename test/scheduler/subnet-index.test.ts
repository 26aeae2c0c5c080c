import test from 'ava';
import { readNec } from '../../scheduler/index/facts.ts';
import { SubnetIndex } from '../../scheduler/index/subnet-index.ts';
import { type EniWords, necOf } from './scheduler-scene.ts';

const IP = '10.2.0.9';

type Row = {
  readonly title: string;
  /** What each node's ENIs say: subnet and network; each node is in zone z. */
  readonly told: readonly (readonly (readonly [subnetID: string, cidr: string])[])[];
  /** Where 10.2.0.9 is. */
  readonly expected: { readonly subnetId: string; readonly cidr: string } | undefined;
};

const ROWS: readonly Row[] = [
  {
    title: 'knows the network that one ENI says',
    told: [
      [
        ['subnet-a', '10.2.0.0/24'],
        ['subnet-a', ''],
      ],
      [['subnet-a', '']],
    ],
    expected: { subnetId: 'subnet-a', cidr: '10.2.0.0/24' },
  },
  {
    title: 'believes the many when one says another network',
    told: [[['subnet-a', '10.2.0.0/24']], [['subnet-a', '10.2.0.0/24']], [['subnet-a', '10.1.0.0/24']]],
    expected: { subnetId: 'subnet-a', cidr: '10.2.0.0/24' },
  },
  {
    title: 'takes the first network in the alphabet when as many say each',
    told: [[['subnet-a', '10.2.0.0/24']], [['subnet-a', '10.2.0.0/20']]],
    expected: { subnetId: 'subnet-a', cidr: '10.2.0.0/20' },
  },
  {
    title: 'finds the smaller of two networks that overlap',
    told: [[['subnet-a', '10.0.0.0/8']], [['subnet-b', '10.2.0.0/24']]],
    expected: { subnetId: 'subnet-b', cidr: '10.2.0.0/24' },
  },
  {
    title: 'finds the first by id of two subnets with one network',
    told: [[['subnet-b', '10.2.0.0/24']], [['subnet-a', '10.2.0.0/24']]],
    expected: { subnetId: 'subnet-a', cidr: '10.2.0.0/24' },
  },
  { title: 'finds nothing in what is no network', told: [[['subnet-a', '10.2.0.9/24']]], expected: undefined },
];

for (const { title, told, expected } of ROWS) {
  const necs = told.map((enis, node) => {
    const words = enis.map(([subnetID, cidr], eni): EniWords => ({ eniID: `eni-${node}-${eni}`, subnetID, cidr }));
    return readNec(necOf({ name: `n${node}`, zone: 'z', enis: words }));
  });
  for (const [order, inOrder] of [
    ['in order', necs],
    ['backwards', necs.toReversed()],
  ] as const) {
    test(`SubnetBook: ${title}, told ${order}`, (t) => {
      const book = new SubnetIndex();
      for (const nec of inOrder) book.update(undefined, nec);
      t.deepEqual(book.find(IP), expected && { ...expected, zone: 'z' });
    });
  }
}

const SAID = { name: 'n1', zone: 'z', enis: [{ eniID: 'eni-1', subnetID: 'subnet-a', cidr: '10.2.0.0/24' }] };

test('SubnetBook: tells of a change when the answers are others, and forgets what nobody says any more', (t) => {
  const book = new SubnetIndex();
  const [one, two] = [readNec(necOf(SAID)), readNec(necOf({ ...SAID, name: 'n2' }))];
  t.true(book.update(undefined, one));
  t.false(book.update(undefined, two));
  t.false(book.update(one, one));
  t.false(book.update(one, undefined));
  t.false(book.nodesIn('subnet-a').has('n1'));
  t.true(book.nodesIn('subnet-a').has('n2'));
  t.true(book.update(two, undefined));
  t.is(book.get('subnet-a'), undefined);
  t.is(book.find(IP), undefined);
});

test('SubnetBook: believes the zone that most say, and the first in the alphabet when as many say each', (t) => {
  const book = new SubnetIndex();
  for (const [name, zone] of [
    ['n1', 'z2'],
    ['n2', 'z1'],
  ] as const)
    book.update(undefined, readNec(necOf({ ...SAID, name, zone })));
  t.is(book.get('subnet-a')?.zone, 'z1');
  book.update(undefined, readNec(necOf({ ...SAID, name: 'n3', zone: 'z2' })));
  t.is(book.get('subnet-a')?.zone, 'z2');
});
