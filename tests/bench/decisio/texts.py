"""Texts of the made-up questions, by the right answer: each another text, so that none is known by heart."""

TEAMS = {
    "billing": """My card was charged twice for the same order.
The invoice for May shows the wrong VAT number.
I cancelled in March and you still take 12 euros a month.
Where can I change the card that you charge?
The refund you promised is not on my account yet.
Why is this bill higher than the last one?
Please send the receipt for 2024 to our accountant.
The discount code was accepted, but I paid the full price.
Our purchase order number is missing on the invoice.
Can we pay by bank transfer instead?
A reminder came for an invoice that I paid a week ago.
You billed eleven seats, we are nine.
The currency changed from pounds to dollars without a word.
What is the item called service fee on my statement?
My bank rejected the payment, should I try again?
I need the last three invoices as one file.
The trial was free, so why did you take money?
Please change the address on our invoices.
Tax was added although we are exempt.
I was promised a credit note in April.""",
    "access": """I cannot sign in since this morning.
The reset mail for my password never arrives.
My colleague left, please close her account.
The app says that my account is locked.
The code from the text message is not accepted.
Our new employee needs a login.
I lost the phone with the authenticator on it.
It says wrong password, but I am sure that it is right.
How do I make Tom an administrator?
I am logged out every five minutes.
My user name has a typo, can you correct it?
The invitation link has expired.
Single sign-on sends me round in circles.
I can see the project, but I may not edit it.
Somebody from another country entered my account.
My old email address is gone, and the code goes there.
Please give our auditor read rights until Friday.
The fingerprint is no longer recognised.
Which permission is needed to open the archive?
I removed myself from the team by mistake.""",
    "bug": """The page stays white after I press save.
Export writes an empty file.
The app crashes when I turn the phone.
Dates are one day off in the calendar.
Search finds nothing, not even exact titles.
The total at the bottom is not the sum of the rows.
Umlauts come out as question marks in the PDF.
Sorting by name puts Z before A.
The upload stops at 99 percent every time.
After the update all my filters are gone.
The same comment appears three times.
Dark mode shows black letters on black.
The counter goes down when I add an item.
Printing cuts off the right half of the table.
A click on the map opens the settings.
The notification sound plays without end.
Copy and paste loses every second line.
The chart is upside down on the tablet.
Undo removes more than the last step.
An error 500 comes up when the title has a slash.""",
    "sales": """What does it cost for 200 people?
We would like to see a demonstration next week.
Do schools get a discount?
Can we move from the small plan to the large one?
Is there a version that we can host ourselves?
Please send an offer for three years.
How do you compare with your competitors?
Which plan has the audit log?
We are a reseller in Spain, do you have a partner programme?
Could someone call me about the enterprise plan?
Is there a minimum number of seats?
Do you offer training for new customers?
We want to try it with one department first.
What is in the premium package?
Are there prices for charities?
When will the Japanese edition be on sale?
Our procurement needs three quotes, may we have yours?
I am interested, but who are your other customers?
Can we add forty licences in January?
Is support included in the price?""",
}

INTENTS = {
    "card_lost": """I left my card in a taxi.
My wallet is gone, card and all.
I can't find my card.
Somebody stole my debit card.
The cash machine kept my card and it is not coming back.
The card fell into the river.
I think that the card was in the jacket I gave away.
Please block it, I do not have it any more.""",
    "card_late": """My new card has not come.
When does the card arrive?
Still no card in the mail.
You sent the plastic two weeks ago, and nothing.
How long is the delivery of a card?
The postman had no letter with a card for me.
I ordered a card in May and am still waiting.
Can you track the envelope with my card?""",
    "pin_forgotten": """I forgot my PIN.
What was my PIN again?
I do not know the four digits.
The number for the machine has slipped my mind.
Remind me of the secret number, please.
I can't remember the code of my card.
Is there a way to look up the PIN?
My memory fails me on the card's code.""",
    "pin_blocked": """Wrong PIN three times, now blocked.
The PIN is locked.
Please unblock my PIN.
The machine says too many attempts.
My code does not work any more after some mistakes.
I mistyped the digits, and now it is frozen.
Can you reset the counter of PIN tries?
The till refuses my code as barred.""",
    "transfer_late": """The transfer has not arrived.
I sent money on Monday, and it is not there.
My transfer says pending.
How long does a payment to Italy take?
The landlord has not received the rent.
Where is the money that I sent?
The standing order left my account and came nowhere.
It is three days now, and the receiver sees nothing.""",
    "transfer_wrong": """I sent money to a wrong person.
I mistyped the account number of the receiver.
Take my transfer back.
The payment went to my old flatmate by mistake.
I entered one zero too many, please recall it.
Can you cancel what I just sent?
The name did not match, and I sent it all the same.
I paid the same person twice and want one back.""",
    "fee_asked": """What is this fee for?
Why did you take two euros?
There is a charge that I don't know.
Does the account cost something now?
I was charged for taking out cash.
What do you ask for a card abroad?
Your statement lists costs nobody told me of.
Is there a price for paper statements?""",
    "rate_asked": """What is the rate for dollars?
How do you convert yen?
Which exchange rate is used?
How many pounds do I get for a hundred euros?
Is the Swiss franc dear today?
When is the currency rate fixed, at payment or later?
I got less foreign money than the newspaper says.
Do you use the market's rate for kroner?""",
    "limit_raised": """Raise my daily limit.
I must pay more than the limit.
The limit is too low.
I want to take out 3,000 at once.
May I spend more per day next week?
The car costs more than I can send in a day.
Please lift the ceiling of my card.
How do I get a higher maximum?""",
    "account_closed": """Close my account.
I want to leave your bank.
Please end my contract.
I move my money elsewhere, delete everything.
How do I cancel my account for good?
I no longer need the account.
Terminate the agreement at the end of June.
My late father's account must be dissolved.""",
}
