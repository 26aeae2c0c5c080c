/**
 * Parses '10.0.0.5' or 'fd00::1' to 4 or 16 bytes; undefined when it is neither. Zones ('%eth0') are refused.
 * @see RFC 4291 section 2.2, inet_pton(3)
 */
export function parseIp(text: string): Uint8Array | undefined {
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text);
}

/**
 * Renders an address in its one form (IPv6 in lower case and shortened, as the kernel's tools print it), so that equal
 * addresses are equal texts: they are keys. @returns undefined for any other text
 */
export function canonicalIp(text: string): string | undefined {
  // An IPv4 address without leading zeros has one form.
  if (!text.includes(':')) return parseIpv4Number(text, text.length) < 0 ? undefined : text;
  const bytes = parseIpv6(text);
  return bytes === undefined ? undefined : formatIpv6(bytes, 0);
}

/** Reports whether the first `bits` bits of two addresses are equal; false for addresses of two families. */
export function sharePrefix(one: Uint8Array, other: Uint8Array, bits: number): boolean {
  if (one.length !== other.length) return false;
  for (let at = 0; at < bits; at += 8) {
    const mask = bits - at >= 8 ? 0xff : 0xff & (0xff << (8 - (bits - at)));
    const index = at >> 3;
    if ((((one[index] ?? 0) ^ (other[index] ?? 0)) & mask) !== 0) return false;
  }
  return true;
}

/** Renders 4 bytes as '10.0.0.5', 16 bytes in the form of RFC 5952. @param offset where they begin in `bytes` */
export function formatIp(bytes: Uint8Array, offset: number, length: number): string {
  if (length === 4) {
    return `${bytes[offset]}.${bytes[offset + 1]}.${bytes[offset + 2]}.${bytes[offset + 3]}`;
  }
  return formatIpv6(bytes, offset);
}

function parseIpv4(text: string): Uint8Array | undefined {
  const value = parseIpv4Number(text, text.length);
  return value < 0 ? undefined : Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value);
}

/** Parses the first `end` characters as an IPv4 address; returns it as a number, or -1. Allocates nothing. */
export function parseIpv4Number(text: string, end: number): number {
  let address = 0;
  let index = 0;
  let value = -1;
  for (let at = 0; at <= end; at++) {
    const char = at === end ? 46 : text.charCodeAt(at);
    if (char === 46) {
      if (value < 0 || index > 3) {
        return -1;
      }
      address = address * 256 + value;
      index += 1;
      value = -1;
    } else if (char >= 48 && char <= 57 && value !== 0) {
      // A leading zero is refused, as inet_pton does: some programs read it as octal.
      value = (value < 0 ? 0 : value * 10) + char - 48;
      if (value > 255) {
        return -1;
      }
    } else {
      return -1;
    }
  }
  return index === 4 ? address : -1;
}

function parseIpv6(text: string): Uint8Array | undefined {
  const halves = text.split('::');
  if (halves.length > 2) {
    return undefined;
  }
  const isShortened = halves.length === 2;
  // An IPv4 address stands at the end of the text only.
  const head = parseGroups(halves[0] ?? '', !isShortened);
  const tail = isShortened ? parseGroups(halves[1] ?? '', true) : [];
  if (head === undefined || tail === undefined) {
    return undefined;
  }
  const missing = 16 - head.length - tail.length;
  // '::' stands for at least one group.
  if (isShortened ? missing < 2 : missing !== 0) {
    return undefined;
  }
  const bytes = new Uint8Array(16);
  bytes.set(head, 0);
  bytes.set(tail, 16 - tail.length);
  return bytes;
}

function parseGroups(text: string, mayEndInIpv4: boolean): readonly number[] | undefined {
  if (text === '') {
    return [];
  }
  const bytes: number[] = [];
  const groups = text.split(':');
  for (const [index, group] of groups.entries()) {
    if (mayEndInIpv4 && index === groups.length - 1 && group.includes('.')) {
      const ipv4 = parseIpv4(group);
      if (ipv4 === undefined) {
        return undefined;
      }
      bytes.push(...ipv4);
    } else if (/^[0-9a-fA-F]{1,4}$/.test(group)) {
      const value = Number.parseInt(group, 16);
      bytes.push(value >> 8, value & 0xff);
    } else {
      return undefined;
    }
  }
  return bytes.length <= 16 ? bytes : undefined;
}

function formatIpv6(bytes: Uint8Array, offset: number): string {
  const groups: number[] = [];
  for (let index = 0; index < 16; index += 2) {
    groups.push(((bytes[offset + index] ?? 0) << 8) | (bytes[offset + index + 1] ?? 0));
  }
  const run = longestZeroRun(groups);
  if (run.start === 0 && run.length === 5 && groups[5] === 0xffff) {
    return `::ffff:${formatIp(bytes, offset + 12, 4)}`;
  }
  const hex = (part: readonly number[]) => part.map((group) => group.toString(16)).join(':');
  if (run.length < 2) {
    return hex(groups);
  }
  return `${hex(groups.slice(0, run.start))}::${hex(groups.slice(run.start + run.length))}`;
}

function longestZeroRun(groups: readonly number[]): { start: number; length: number } {
  let best = { start: -1, length: 0 };
  let start = -1;
  for (let index = 0; index <= groups.length; index++) {
    if (groups[index] === 0) {
      start = start < 0 ? index : start;
    } else if (start >= 0) {
      if (index - start > best.length) {
        best = { start, length: index - start };
      }
      start = -1;
    }
  }
  return best;
}
