"""Families of documents in English."""

from __future__ import annotations

import random

from .documents import Drawn, Fact, Family, count, money, one_of, scaled, tenths, worded

PEOPLE = (
    "Anna Schmidt",
    "Tom Okafor",
    "Maria Lopez",
    "David Chen",
    "Priya Nair",
    "John Miller",
    "Elena Rossi",
    "Sam Carter",
)
CITIES = ("Hamburg", "Leeds", "Porto", "Denver", "Osaka", "Cape Town", "Lyon", "Austin")


def _negative(draw: random.Random) -> Drawn:
    value = draw.randrange(5, 60) / 10
    return f"{draw.choice('-−')}{value:.1f} mmol/L", -value


def _frost(draw: random.Random) -> Drawn:
    value = draw.randrange(2, 20)
    return draw.choice(("-{}", "minus {}", "−{}")).format(value), -float(value)


INVOICE = Family(
    "invoice",
    "English",
    (
        "INVOICE INV-{}\nDate: 2024-03-18",
        "Invoice No. A-{}-B, issued 2025-01-09",
        "TAX INVOICE\nReference: PO/{}",
    ),
    (
        Fact(
            "Subtotal: |{}", money(1_000, 9_000, "<> EUR", "€ <>", "${}"), "What is the subtotal before tax?"
        ),
        Fact("Shipping: |{}", money(5, 90), "How much is charged for shipping?"),
        Fact("VAT rate: |{}", tenths(5, 25, "{}%"), "What is the VAT rate in percent?"),
        Fact("Total due: |{}", money(10_000, 40_000), "What is the total amount due?"),
        Fact("Deposit received: |{}", money(50, 900), "How much deposit was received?"),
        Fact("Payment terms: |{} days net", count(7, 90), "Within how many days must it be paid?"),
        Fact("Billed to: |{}", one_of(*PEOPLE), "", "Who is billed?"),
        Fact("Ship to: |{}", one_of(*CITIES), "", "Which city is the shipment sent to?"),
        Fact(
            "Delivery: |{}",
            one_of("by courier on pallets", "by sea freight", "collected by the customer"),
            "",
            "How is the order delivered?",
        ),
        Fact(
            "Note: |{}",
            one_of(
                "Please quote the invoice number with your payment.", "Goods stay ours until paid in full."
            ),
            "",
            "What does the note on the invoice say?",
        ),
        Fact(
            "Bank: |{}",
            one_of("Northern Trust Bank", "Banco Atlantico", "First Harbour Savings"),
            "",
            "Which bank is the payment sent to?",
        ),
    ),
    (
        "Page 1 of 2",
        "Phone: +49 30 1234567",
        "VAT ID: DE812345678",
        "Currency as stated",
        "E-mail: office@example.com",
    ),
)

LAB = Family(
    "lab report",
    "English",
    ("Laboratory report L{}\nCollected 2024-05-02 08:15", "PATHOLOGY REPORT\nSample S-{}"),
    (
        Fact("Hemoglobin: |{}", tenths(9, 17, "{} g/dL"), "What is the hemoglobin value in g/dL?"),
        Fact("Glucose: |{}", count(65, 180, "{} mg/dL"), "What is the glucose value in mg/dL?"),
        Fact("Sodium: |{}", count(130, 148, "{} mmol/L"), "What is the sodium value in mmol/L?"),
        Fact("Platelets: |{}", count(150_000, 400_000, "{} per µL"), "What is the platelet count per µL?"),
        Fact("TSH: |{}", tenths(0, 6, "{} mIU/L"), "What is the TSH value in mIU/L?"),
        Fact("Base excess: |{}", _negative, "What is the base excess in mmol/L?"),
        Fact("Ferritin: |{}", tenths(20, 300, "{} ng/mL"), "What is the ferritin value in ng/mL?"),
        Fact("Patient: |{}", one_of(*PEOPLE), "", "What is the patient's name?"),
        Fact(
            "Comment: |{}",
            one_of("Sample slightly hemolysed.", "Patient was fasting.", "Repeat in six weeks."),
            "",
            "What is the laboratory's comment?",
        ),
        Fact("Physician: |Dr. {}", one_of("Hall", "Weber", "Singh", "Moreau"), "", "Who is the physician?"),
        Fact(
            "Method: |{}",
            one_of("Photometry", "Ion-selective electrode", "Flow cytometry"),
            "",
            "Which method was used?",
        ),
    ),
    ("Status: final", "Validated at 14:32", "Accession 77-4021-X", "Reference ranges are for adults."),
)

TICKET = Family(
    "ticket",
    "English",
    ("Ticket #{}\nFrom: kim@example.com\n\nHello,", "Support request T-{}\n\nHi team,"),
    (
        Fact(
            "I was charged {} for the last order.",
            money(20, 900),
            "How much was the customer charged for the last order?",
            "Which sentence says what was charged for the last order?",
        ),
        Fact(
            "I have been waiting for {} days.",
            worded(2, 60),
            "For how many days has the customer been waiting?",
            "Which sentence says how long the customer has been waiting?",
        ),
        Fact(
            "The app crashes about {} times a day.",
            worded(2, 20),
            "How many times a day does the app crash?",
            "Which sentence says how often the app crashes?",
        ),
        Fact(
            "We have {} users on this account.",
            scaled(2, 90, ("{}k", 1e3), ("{} thousand", 1e3)),
            "How many users are on the account?",
            "Which sentence says how many users there are?",
        ),
        Fact(
            "The upload stops at {} percent.",
            count(5, 99),
            "At which percentage does the upload stop?",
            "Which sentence says where the upload stops?",
        ),
        Fact(
            "Our contract costs {} a year.",
            money(1_000, 20_000),
            "What does the contract cost a year?",
            "Which sentence says what the contract costs?",
        ),
        Fact(
            "I would like {} instead.",
            one_of("a refund", "a replacement", "a call back", "a credit note"),
            "",
            "Which sentence says what the customer would like?",
        ),
        Fact(
            "The error message says {}.",
            one_of("access denied", "disk is full", "unknown host", "session expired"),
            "",
            "Which sentence quotes the error message?",
        ),
        Fact(
            "My colleague {} saw the same.",
            one_of("Petra", "Omar", "Li", "Bruno"),
            "",
            "Which sentence names a colleague?",
        ),
    ),
    (
        "This is really annoying.",
        "I already restarted everything.",
        "Version 4.2.1 worked well.",
        "Please call me on 555-123-4567.",
        "It began on 2024-02-11.",
    ),
    joint=" ",
)

CONTRACT = Family(
    "contract",
    "English",
    ("SERVICE AGREEMENT No. SA-{}", "SUPPLY CONTRACT {}/B\nbetween the Supplier and the Customer"),
    (
        Fact(
            "The Customer shall pay a monthly fee of {}.",
            money(500, 9_000),
            "What is the monthly fee?",
            "Which sentence sets the monthly fee?",
        ),
        Fact(
            "The agreement may be ended with {} days' notice.",
            worded(10, 120),
            "How many days of notice are needed to end the agreement?",
            "Which sentence says how the agreement may be ended?",
        ),
        Fact(
            "For each week of delay the Supplier owes a penalty of {}% of the price.",
            tenths(0, 5),
            "What penalty in percent is owed for each week of delay?",
            "Which sentence sets the penalty for delay?",
        ),
        Fact(
            "The Supplier's liability is limited to {}.",
            scaled(1, 9, ("${} million", 1e6), ("EUR {}m", 1e6), ("€{} million", 1e6)),
            "To what amount is the Supplier's liability limited?",
            "Which sentence limits the Supplier's liability?",
        ),
        Fact(
            "The warranty period is {} months from delivery.",
            count(6, 61),
            "How many months does the warranty last?",
            "Which sentence sets the warranty period?",
        ),
        Fact(
            "Late payments bear interest at {} per cent a year.",
            tenths(3, 12),
            "At what rate in percent a year do late payments bear interest?",
            "Which sentence deals with interest on late payments?",
        ),
        Fact(
            "Records must be kept for {} years.",
            worded(3, 15),
            "For how many years must records be kept?",
            "Which sentence says how long records are kept?",
        ),
        Fact(
            "Disputes are decided by the courts of {}.",
            one_of(*CITIES),
            "",
            "Which sentence says which courts decide disputes?",
        ),
        Fact(
            "Both parties shall keep {} confidential.",
            one_of("all prices", "technical drawings", "customer lists"),
            "",
            "Which sentence deals with confidentiality?",
        ),
    ),
    (
        "Annex 3 is part of this agreement.",
        "Headings are for convenience only.",
        "Changes must be made in writing.",
        "Neither party may assign its rights without consent.",
    ),
    joint="\n\n",
)

PRODUCT = Family(
    "product page",
    "English",
    ("AeroDesk MX-{} | Office", "# TrailPack {}Z", "Model KT{}-S, new this season"),
    (
        Fact("- Price: |{}", money(40, 1_900), "What is the price?"),
        Fact("- Weight: |{}", tenths(1, 40, "{} kg"), "What is the weight in kg?"),
        Fact("- Battery: |{}", count(2_000, 9_900, "{} mAh"), "What is the battery's capacity in mAh?"),
        Fact("- Height: |{}", tenths(20, 190, "{} cm"), "What is the height in cm?"),
        Fact("- Rating: |{} out of 5 stars", tenths(3, 5), "What is the average rating?"),
        Fact(
            "- Sold so far: |{}",
            scaled(1, 90, ("{}k", 1e3), ("{} thousand", 1e3), ("{} million", 1e6)),
            "How many were sold so far?",
        ),
        Fact(
            "- Colour: |{}",
            one_of("forest green", "matt black", "sand", "ocean blue"),
            "",
            "What colour is it?",
        ),
        Fact("- Material: |{}", one_of("recycled nylon", "oak and steel", "cork"), "", "What is it made of?"),
        Fact(
            "- Returns: |{}",
            one_of("free within a month", "buyer pays the postage", "not possible"),
            "",
            "What are the terms of returning it?",
        ),
        Fact("- Made in: |{}", one_of("Portugal", "Vietnam", "Canada", "Latvia"), "", "Where is it made?"),
        Fact(
            "- In the box: |{}",
            one_of("charger and pouch", "screws and a hex key", "two spare straps"),
            "",
            "What is in the box?",
        ),
    ),
    (
        "Ships worldwide.",
        "EAN 4006381333931",
        "Compatible with v2.1.0 and later",
        "See https://example.com/p/4711",
    ),
)

NOTES = Family(
    "meeting notes",
    "English",
    ("Meeting notes, 2024-09-12 10:00, room B{}", "Minutes of project P-{}"),
    (
        Fact(
            "- {} people took part in the survey.",
            count(12_000, 90_000),
            "How many people took part in the survey?",
            "Which item is about the survey?",
        ),
        Fact(
            "- The budget was raised to {}.",
            scaled(1, 40, ("${}m", 1e6), ("{} million euros", 1e6), ("£{}k", 1e3)),
            "To what amount was the budget raised?",
            "Which item is about the budget?",
        ),
        Fact(
            "- The team needs {} more engineers.",
            worded(2, 19),
            "How many more engineers does the team need?",
            "Which item is about hiring engineers?",
        ),
        Fact(
            "- Churn fell to {}%.",
            tenths(1, 9),
            "To what percentage did churn fall?",
            "Which item is about churn?",
        ),
        Fact(
            "- The temperature in the hall was {} degrees.",
            _frost,
            "What was the temperature in the hall in degrees?",
            "Which item is about the temperature?",
        ),
        Fact(
            "- The migration takes {} weeks.",
            count(3, 30),
            "How many weeks does the migration take?",
            "Which item is about the migration?",
        ),
        Fact(
            "- The new office in {} opens in spring.",
            one_of(*CITIES),
            "",
            "Which item is about the new office?",
        ),
        Fact("- {} will write the summary.", one_of(*PEOPLE), "", "Which item says who writes the summary?"),
        Fact(
            "- The logo will be {}.",
            one_of("redrawn", "kept as it is", "printed in one colour"),
            "",
            "Which item is about the logo?",
        ),
    ),
    ("- Next meeting at 14:30.", "- Coffee machine is broken again.", "- See ticket OPS-1182."),
)

RECORD = Family(
    "record",
    "English",
    ("ORD-{}", "cust_{}", "R{}X"),
    (
        Fact("order.total", money(100, 9_000), "What is the total of the order?"),
        Fact("order.items_count", count(2, 60), "How many items are in the order?"),
        Fact("customer.age", count(18, 90), "How old is the customer?"),
        Fact(
            "customer.loyalty_points", count(1_000, 90_000), "How many loyalty points does the customer have?"
        ),
        Fact("shipping.weight_kg", tenths(1, 60), "What is the weight of the shipment in kg?"),
        Fact("shipping.cost", money(3, 80), "What does the shipping cost?"),
        Fact("customer.name", one_of(*PEOPLE), "", "What is the customer's name?"),
        Fact("customer.city", one_of(*CITIES), "", "In which city does the customer live?"),
        Fact(
            "shipping.instructions",
            one_of("leave with a neighbour", "ring twice", "deliver after six"),
            "",
            "What are the instructions for the delivery?",
        ),
        Fact(
            "order.status",
            one_of("on hold", "shipped", "cancelled", "paid"),
            "",
            "What is the order's status?",
        ),
        Fact(
            "order.gift_message",
            one_of("Happy birthday!", "With love from all of us", "Get well soon"),
            "",
            "What is the gift message?",
        ),
    ),
    is_record=True,
)

FAMILIES = (INVOICE, LAB, TICKET, CONTRACT, PRODUCT, NOTES, RECORD)
