/** The samples of `conspectus eval compare`: those of `numpy.random.default_rng(0)`, so that intervals are equal. */

const RESAMPLES = 10_000;
const TWO_32 = 2 ** 32;
const LIMBS = 8;

/** State, increment and multiplier of PCG64 (128 bits) in parts of 16 bits, the lowest first. */
const STATE = limbs(0x1aa1b5345996452d09585eb7a69561e3n);
const INCREMENT = limbs(0x418ddadb3af71a82588133bc447873a9n);
const MULTIPLIER = limbs(0x2360ed051fc65da44385df649fccf645n);

function limbs(value: bigint): Float64Array {
  return Float64Array.from({ length: LIMBS }, (_, at) => Number((value >> BigInt(16 * at)) & 0xffffn));
}

/** Means of samples with replacement, in ascending order. */
export function resampledMeans(values: readonly number[]): Float64Array {
  const draw = integers(values.length);
  const means = new Float64Array(RESAMPLES);
  for (let sample = 0; sample < RESAMPLES; sample += 1) {
    let sum = 0;
    for (let drawn = 0; drawn < values.length; drawn += 1) sum += values[draw()] ?? 0;
    means[sample] = sum / (values.length || 1);
  }
  return means.sort();
}

/** A percentile of ascending values, interpolated as numpy does. */
export function percentile(sorted: Float64Array, percent: number): number {
  const position = (percent / 100) * (sorted.length - 1);
  const below = Math.floor(position);
  const [low, high] = [sorted[below] ?? 0, sorted[below + 1] ?? sorted[below] ?? 0];
  return low + (high - low) * (position - below);
}

/** Integers from 0 below `count`, by Lemire's method, without bias. */
function integers(count: number): () => number {
  if (count < 2) return () => 0;
  const next = words();
  const least = (TWO_32 - count) % count;
  return () => {
    let product = next() * count;
    while (product % TWO_32 < least) product = next() * count;
    return Math.floor(product / TWO_32);
  };
}

/** Words of 32 bits of PCG64: the lower half of each output, then the upper. */
function words(): () => number {
  const state = STATE.slice();
  const before = STATE.slice();
  let spare: number | undefined;
  return () => {
    if (spare !== undefined) {
      const word = spare;
      spare = undefined;
      return word;
    }
    step(state, before);
    const [low, high] = output(state);
    spare = high;
    return low;
  };
}

/** The next state: multiplied and incremented, modulo 2^128. Every sum is exact in a double. */
function step(state: Float64Array, before: Float64Array): void {
  before.set(state);
  let carry = 0;
  for (let at = 0; at < LIMBS; at += 1) {
    let sum = carry + INCREMENT[at]!;
    for (let part = 0; part <= at; part += 1) sum += before[part]! * MULTIPLIER[at - part]!;
    carry = Math.floor(sum / 65_536);
    state[at] = sum - carry * 65_536;
  }
}

/** XSL-RR: the halves of the state combined, and rotated by its highest 6 bits. */
function output(state: Float64Array): [low: number, high: number] {
  const low = (state[0]! ^ state[4]!) | ((state[1]! ^ state[5]!) << 16);
  const high = (state[2]! ^ state[6]!) | ((state[3]! ^ state[7]!) << 16);
  const turn = state[7]! >>> 10;
  const first = turn < 32 ? low : high;
  const second = turn < 32 ? high : low;
  const by = turn % 32;
  if (by === 0) return [first >>> 0, second >>> 0];
  return [((first >>> by) | (second << (32 - by))) >>> 0, ((second >>> by) | (first << (32 - by))) >>> 0];
}
