import type { ExecutionContext } from 'ava';
import { isObject, type JsonObject } from '../../../sim/support/netns.ts';
import type { CniAnswer, PrintedCniError } from '../../support/exec-cni.ts';

/** The CNI versions that the project speaks: those whose result has the form of 0.3.0 or later. */
export const VERSIONS = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] as const;

/** Asserts success and returns the printed result. */
export function succeed(t: ExecutionContext, answer: CniAnswer): JsonObject {
  t.is(answer.exitCode, 0, answer.stdout + answer.stderr);
  t.is(answer.stderr, '', 'standard error stays empty');
  if (answer.result === undefined) throw new Error(`no result on standard output: ${answer.stdout}`);
  return answer.result;
}

/** Asserts success without a result, as DEL, CHECK, STATUS and GC end. */
export function succeedSilently(t: ExecutionContext, answer: CniAnswer): void {
  t.like(answer, { exitCode: 0, stdout: '', stderr: '' });
}

/** Asserts failure as the specification wants it, status 1 and a JSON object, and returns the printed error. */
export function fail(t: ExecutionContext, answer: CniAnswer): PrintedCniError {
  t.is(answer.exitCode, 1, answer.stdout + answer.stderr);
  t.is(answer.stderr, '', 'standard error stays empty');
  if (answer.error === undefined) throw new Error(`no error on standard output: ${answer.stdout}`);
  return answer.error;
}

/** The addresses in a result, without their prefix lengths. */
export function ipsOf(result: JsonObject): readonly string[] {
  const ips: unknown = result['ips'];
  return Array.isArray(ips) ? ips.filter(isObject).map((ip) => String(ip['address']).split('/')[0] ?? '') : [];
}
