import test from 'ava';
import { CloudError } from '../../../cloud/cloud-error.ts';
import { problemKey, problemOfRefusal, problemText } from '../../../ipamd/decide/problem-text.ts';
import { MAX_TEXT } from '../../../runtime/limit-text.ts';

const REQUEST = '0b1c8e0e-6f5e-4c5a-9d7e-0d5f3c1a2b3c';

test('problemText: appends the RequestId of the refused call', (t) => {
  const problem = { reason: 'ENILimit', message: 'the VPC takes no more ENIs' } as const;
  t.is(problemText(problem), 'the VPC takes no more ENIs');
  t.is(problemText({ ...problem, requestId: REQUEST }), `the VPC takes no more ENIs, RequestId=${REQUEST}`);
});

test('problemText: a long text of the cloud leaves place for the RequestId', (t) => {
  const text = problemText({ reason: 'CloudRefused', message: 'x'.repeat(5_000), requestId: REQUEST });
  t.true(text.length < MAX_TEXT.event - 40);
  t.true(text.endsWith(`…, RequestId=${REQUEST}`));
});

test('problemKey: differs with reason and message, not with the RequestId', (t) => {
  const one = { reason: 'ENILimit', message: 'full' } as const;
  t.is(problemKey({ ...one, requestId: REQUEST }), problemKey({ ...one, requestId: 'another' }));
  t.not(problemKey(one), problemKey({ ...one, message: 'fuller' }));
  t.not(problemKey(one), problemKey({ ...one, reason: 'InstanceENILimit' }));
});

test('problemOfRefusal: keeps the RequestId apart from the message', (t) => {
  const failure = { code: 'UnauthorizedOperation', action: 'DescribeInstances', text: 'no', retry: 'never' } as const;
  const problem = problemOfRefusal(new CloudError({ ...failure, afterMs: 0, requestId: REQUEST }));
  t.is(problemText(problem), `DescribeInstances: Code=UnauthorizedOperation, Message=no, RequestId=${REQUEST}`);
  t.notRegex(problem.message, /RequestId/);
});
