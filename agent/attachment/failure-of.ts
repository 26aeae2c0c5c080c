import { isWireError, type WireErrorCode } from '../../dataplane/wire-error.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { MAX_TEXT, messageText } from '../../runtime/limit-text.ts';
import { CNI_CODE } from '../api/cni-code.ts';
import { type CniFailure, CniFailureError } from '../api/cni-failure.ts';
import { JournalError } from '../journal/journal-error.ts';

/**
 * Translates any error of a use case into what the runtime gets. The only table from our errors to CNI codes. The texts
 * are cut: the runtime puts them into an event of the Pod.
 */
export function failureOf(error: unknown): CniFailure {
  const { code, msg, details } = translate(error);
  return { code, msg: messageText(msg, MAX_TEXT.event), details: messageText(details, MAX_TEXT.event) };
}

function translate(error: unknown): CniFailure {
  if (error instanceof CniFailureError) return { code: error.code, msg: error.message, details: error.details };
  if (error instanceof JournalError) return journalFailure(error);
  if (isWireError(error)) {
    return { code: WIRE_CODES[error.code], msg: `cannot wire the Pod: ${error.message}`, details: requestOf(error) };
  }
  if (isKernelError(error)) {
    return { code: CNI_CODE.kernel, msg: `the kernel refused: ${error.message}`, details: requestOf(error) };
  }
  const text = messageOf(error);
  return { code: CNI_CODE.internal, msg: `agent: ${text}`, details: '' };
}

const WIRE_CODES: Readonly<Record<WireErrorCode, CniFailure['code']>> = {
  IFNAME_TAKEN: CNI_CODE.ifnameTaken,
  ROUTE_TAKEN: CNI_CODE.conflict,
  // The sandbox was removed meanwhile; the runtime makes a new one.
  LINK_GONE: CNI_CODE.tryAgainLater,
  NIC_MISSING: CNI_CODE.eniGone,
  // The next pass of the repair makes it.
  BRIDGE_MISSING: CNI_CODE.tryAgainLater,
  KERNEL: CNI_CODE.kernel,
};

function journalFailure(error: JournalError): CniFailure {
  const nextStep =
    error.code === 'JOURNAL_FULL'
      ? 'free space in its file system; running Pods are not touched and DEL still works'
      : 'see the log of tke-eni-agent';
  return { code: CNI_CODE.io, msg: `cannot record the attachment: ${error.message}`, details: nextStep };
}

const KERNEL_ERRORS: ReadonlySet<string> = new Set([
  'NetlinkError',
  'LibcError',
  'SysctlError',
  'ApplyError',
  'NetnsError',
  'NftError',
]);

/** Tells by its name whether an error is of the layers below: each has a code, and some the failed request. */
function isKernelError(error: unknown): error is Error {
  return error instanceof Error && KERNEL_ERRORS.has(error.name);
}

function requestOf(error: Error): string {
  if ('request' in error && typeof error.request === 'string') return error.request;
  return error.cause instanceof Error ? requestOf(error.cause) : '';
}
